/**
 * The Hadoop file system {@code ndn://}: reads what is published by name, every octet verified.
 *
 * <p>{@link byname.hadoop.NdnFileSystem} is the door; {@code Native} is what crosses into C, with
 * handles as numbers, so that a stale one is an error and never a crash.
 */
package byname.hadoop;
