import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * A batch of Flink SQL below one path: words are written, counted into another table, and that is
 * read and written anew. Prints what it finds.
 */
public class Words {
  private static final String CSV = " WITH ('connector'='filesystem','format'='csv','path'='%s/%s')";

  public static void main(String[] arguments) throws Exception {
    String base = arguments[0];
    Configuration conf = new Configuration();
    conf.setString("parallelism.default", "2");
    TableEnvironment tables =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inBatchMode().withConfiguration(conf).build());
    tables.executeSql(
        "CREATE TABLE words (word STRING, line INT)" + String.format(CSV, base, "words"));
    tables.executeSql(
        "CREATE TABLE counts (word STRING, total BIGINT)" + String.format(CSV, base, "counts"));
    tables
        .executeSql(
            "INSERT INTO words VALUES ('one', 1), ('two', 1), ('two', 2), ('a b', 3), ('%', 3)")
        .await();
    String count = "INSERT OVERWRITE counts SELECT word, COUNT(*) FROM words GROUP BY word";
    tables.executeSql(count).await();
    tables.executeSql(count).await();
    try (CloseableIterator<Row> rows =
        tables.executeSql("SELECT word, total FROM counts ORDER BY word").collect()) {
      rows.forEachRemaining(row -> System.out.println("row " + row));
    }
  }
}
