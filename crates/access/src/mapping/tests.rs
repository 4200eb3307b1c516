//! Tables, and who is who by them.

use super::*;

const TABLE: &str = r#"
# Administrators have no business at this door.
[[map]]
method = "krb5"
name = "*/admin@CERN.CH"
deny = true

[[map]]
method = "krb5"
name = "*@CERN.CH"
user = "$1"

[[map]]
method = "gsi"
vo = "cms"
role = "production"
user = "cmsprod"
groups = ["cms", "production"]

[[map]]
method = "gsi"
name = "/DC=ch/*/CN=* *"
group = "/cms*"
user = "$2.$3"
groups = ["cms"]

[[map]]
method = "token"
name = "*"
user = "$1"
"#;

fn table() -> MappingTable {
    MappingTable::parse(TABLE).unwrap()
}

fn who(method: Method, name: &str) -> Presented {
    Presented { method, name: name.to_owned(), memberships: Vec::new() }
}

fn member(vo: &str, role: &str, group: &str) -> Membership {
    Membership { vo: vo.into(), role: role.into(), group: group.into() }
}

fn mapped(who: &Presented) -> Result<(String, Vec<String>, usize), Denial> {
    table().map(who).map(|it| (it.user, it.groups, it.row.number))
}

#[test]
fn the_first_row_that_fits_decides_and_who_fits_none_is_nobody() {
    let anna = mapped(&who(Method::Krb5, "anna@CERN.CH")).unwrap();
    assert_eq!(anna, ("anna".to_owned(), vec![], 2));
    let denied = mapped(&who(Method::Krb5, "anna/admin@CERN.CH"));
    assert_eq!(denied, Err(Denial::Row(RowPlace { number: 1, line: 3 })));
    for (method, name) in [
        (Method::Krb5, "anna@EVIL.ORG"),
        (Method::Krb5, "anna@CERN.CH@EVIL.ORG"),
        (Method::Unix, "anna@CERN.CH"),
        (Method::Host, "anna"),
        (Method::Gsi, "/DC=ch/OU=x/CN=Anna Berg"),
    ] {
        assert_eq!(mapped(&who(method, name)), Err(Denial::NoRow), "{method} {name}");
    }
}

#[test]
fn what_is_no_name_of_a_user_is_nobodys() {
    for name in ["root/x@CERN.CH", "@CERN.CH", "a b@CERN.CH", "a\u{7}@CERN.CH"] {
        let denied = mapped(&who(Method::Krb5, name));
        assert!(matches!(denied, Err(Denial::BadLabel { .. })), "{name:?}: {denied:?}");
    }
    let long = "a".repeat(300) + "@CERN.CH";
    assert!(matches!(mapped(&who(Method::Krb5, &long)), Err(Denial::BadLabel { .. })));
    assert_eq!(mapped(&who(Method::Token, &"a".repeat(5000))), Err(Denial::TooLong));
}

#[test]
fn vo_role_and_group_fit_within_one_membership() {
    let mut anna = who(Method::Gsi, "/DC=ch/OU=x/CN=Anna Berg");
    anna.memberships = vec![member("cms", "NULL", "/cms"), member("atlas", "production", "/atlas")];
    let plain = mapped(&anna).unwrap();
    assert_eq!(plain, ("Anna.Berg".to_owned(), vec!["cms".to_owned()], 4));
    anna.memberships.push(member("cms", "production", "/cms/production"));
    let groups = vec!["cms".to_owned(), "production".to_owned()];
    assert_eq!(mapped(&anna).unwrap(), ("cmsprod".to_owned(), groups, 3));
    anna.memberships = vec![member("atlas", "", "/atlas")];
    assert_eq!(mapped(&anna), Err(Denial::NoRow));
}

#[test]
fn columns_go_together_and_their_number_is_bounded() {
    let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let of = (Method::Gsi, "x".to_owned());
    let who = Presented::with_columns(of, &texts(&["cms", "atlas"]), &texts(&["a"]), &[]);
    assert_eq!(who.memberships, [member("cms", "a", ""), member("atlas", "", "")]);
    let many = vec!["g".to_owned(); 1000];
    let who = Presented::with_columns((Method::Unix, "x".into()), &[], &[], &many);
    assert_eq!(who.memberships.len(), MEMBERSHIPS_MAX);
}

#[test]
fn mistakes_are_told_with_their_line() {
    let told = |text: &str| MappingTable::parse(text).unwrap_err().to_string();
    let row = |rest: &str| told(&format!("# who is who\n\n[[map]]\nmethod = \"krb5\"\n{rest}"));
    let starts = [
        (told("[[map]"), "line 1: "),
        (told("user = 1"), "line 1: \"user\" is unknown here"),
        (told("\n[map]\nmethod = \"krb5\""), "line 2: \"map\" is unknown here"),
        (told("[[map]]\nuser = \"anna\""), "line 1: the row has no method"),
        (
            told("[[map]]\nmethod = \"ldap\"\nuser = \"anna\""),
            "line 2: there is no method \"ldap\"",
        ),
        (row("users = \"anna\""), "line 5: a row has no \"users\""),
        (row("name = \"\"\nuser = \"anna\""), "line 5: name is no pattern"),
        (row("name = 7\nuser = \"anna\""), "line 5: name is no text"),
        (row("name = \"anna\""), "line 3: a row has a user, or deny = true"),
        (row("user = \"anna\"\ndeny = true"), "line 3: a row has a user, or deny = true"),
        (row("deny = \"yes\""), "line 5: deny is no switch"),
        (row("deny = true\ngroups = [\"a\"]"), "line 3: groups are a user's"),
        (row("user = \"$1\""), "line 5: \"$1\" asks for a star"),
        (row("name = \"*\"\nuser = \"a$2\""), "line 6: \"a$2\" asks for a star"),
        (row("name = \"*\"\nuser = \"$\""), "line 6: \"$\" asks for a star"),
        (row("user = \"a/b\""), "line 5: \"a/b\" can be no user"),
        (row("user = \"a\"\ngroups = \"b\""), "line 6: groups is no list of texts"),
        (row("user = \"a\"\ngroups = [\n\"b\",\n\"c d\"]"), "line 8: \"c d\" can be no user"),
    ];
    for (found, expected) in starts {
        assert!(found.starts_with(expected), "{found:?}, not {expected:?}");
    }
}

#[test]
fn a_table_has_so_many_rows_and_no_more() {
    let row = "[[map]]\nmethod = \"krb5\"\ndeny = true\n";
    assert_eq!(MappingTable::parse(&row.repeat(ROWS_MAX)).unwrap().row_count(), ROWS_MAX);
    let error = MappingTable::parse(&row.repeat(ROWS_MAX + 1)).unwrap_err();
    assert!(error.to_string().ends_with("at most 4096 rows"), "{error}");
    assert_eq!(MappingTable::parse("").unwrap().row_count(), 0);
}
