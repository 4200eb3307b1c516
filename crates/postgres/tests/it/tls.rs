//! A server with a certificate: who it has to be, and what is said of one that is not.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use byname_catalog::engine::{Engine, Table};
use byname_postgres::PostgresEngine;

use crate::cluster::{Cluster, give_to_server};
use crate::suite::puts;

fn openssl(directory: &Path, words: &str) {
    let mut command = Command::new("openssl");
    command.current_dir(directory).args(words.split(' ')).stdin(Stdio::null());
    let output = command.output().expect("openssl: scripts/setup has it");
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a certificate authority, and by it a certificate for `localhost`.
fn certify(directory: &Path, authority: &str) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let files = format!("-keyout {authority}.key -out {authority}.pem");
    openssl(directory, &format!("req -x509 {key} {files} -days 2 -subj /CN={authority}"));
    openssl(directory, &format!("req {key} -keyout server.key -out server.csr -subj /CN=db"));
    fs::write(directory.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    let by = format!("-CA {authority}.pem -CAkey {authority}.key -CAcreateserial");
    openssl(
        directory,
        &format!("x509 -req -in server.csr {by} -out server.pem -days 2 -extfile names"),
    );
}

/// A server that takes passwords under TLS, and nothing else over a network; its port.
fn server(certificates: &Path) -> (Cluster, u16) {
    let cluster = Cluster::start();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    cluster.stop();
    for file in ["server.key", "server.pem"] {
        let to = cluster.path().join(file);
        fs::copy(certificates.join(file), &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
        give_to_server(&to);
    }
    let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(cluster.path().join("data/pg_hba.conf"), rules).unwrap();
    cluster.start_with(&format!(
        "-c listen_addresses=127.0.0.1 -p {port} -c ssl=on -c ssl_cert_file={0}/server.pem \
            -c ssl_key_file={0}/server.key",
        cluster.path().display()
    ));
    (cluster, port)
}

#[test]
fn a_server_over_a_network_proves_who_it_is_and_another_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    certify(directory.path(), "other");
    certify(directory.path(), "authority");
    let (cluster, port) = server(directory.path());
    let socket =
        format!("host={} port={port} user=byname dbname=postgres", cluster.path().display());
    cluster.psql(&socket, "ALTER USER byname PASSWORD 'se cret'");
    let roots = |authority: &str| directory.path().join(format!("{authority}.pem"));
    let address = |host: &str, authority: &str| {
        format!(
            "host={host} hostaddr=127.0.0.1 port={port} user=byname dbname=postgres \
                password='se cret' sslmode=verify-full sslrootcert='{}'",
            roots(authority).display()
        )
    };
    let engine = PostgresEngine::open(&address("localhost", "authority")).unwrap();
    engine.begin().unwrap().commit(&puts(&[(Table::Inode, b"a", b"1")])).unwrap();
    let under = "SELECT count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE ssl AND application_name = 'byname catalog'";
    assert_eq!(cluster.psql(&socket, under), "t");
    let url = format!(
        "postgres://byname:se%20cret@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={}",
        roots("authority").display()
    );
    PostgresEngine::open(&url).unwrap();
    for (text, said) in [
        (address("localhost", "other"), "UnknownIssuer"),
        (address("db.lab", "authority"), "not valid for name"),
        (address("localhost", "authority").replace("verify-full", "disable"), "no encryption"),
        (address("localhost", "authority").replace("se cret", "wrong"), "password"),
    ] {
        let refused = PostgresEngine::open(&text).unwrap_err().to_string();
        assert!(refused.contains(said), "{said}: {refused}");
        assert!(!refused.contains("se cret"), "{refused}");
    }
}

#[test]
fn a_server_without_tls_is_not_used_where_it_has_to_prove_who_it_is() {
    let cluster = Cluster::start();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    cluster.stop();
    cluster.start_with(&format!("-c listen_addresses=127.0.0.1 -p {port}"));
    let address = format!("host=127.0.0.1 port={port} user=byname dbname=postgres");
    PostgresEngine::open(&address).expect("this machine's own addresses need none");
    let refused = PostgresEngine::open(&format!("{address} sslmode=verify-full")).unwrap_err();
    assert!(refused.to_string().contains("does not support TLS"), "{refused}");
}
