//! cat, ls, stat, verify and their JSON.

use crate::harness::{Home, Up, noise, write};

fn lab(a: &Home) -> Up {
    let dir = a.work("lab");
    write(&dir.join("numbers"), &noise(1_000_000, 7));
    write(&dir.join("one segment"), &noise(8192, 8));
    write(&dir.join("empty"), b"");
    write(&dir.join("b=1%41"), b"odd");
    std::fs::create_dir_all(dir.join("deep/er")).unwrap();
    write(&dir.join("deep/er/x"), b"x");
    write(&dir.join(".hidden"), b"no");
    a.up(&dir, "/lab")
}

#[test]
fn cat_and_ranges() {
    let a = Home::new();
    let up = lab(&a);
    let whole = noise(1_000_000, 7);
    let link = up.link_to("numbers");
    assert_eq!(a.run(&["cat", &link]).ok().bytes(), whole);
    let part = a.run(&["cat", &link, "--range", "8190:10", "--range", "999990:100"]).ok();
    assert_eq!(part.bytes(), [&whole[8190..8200], &whole[999_990..]].concat());
    assert_eq!(a.run(&["cat", &link, "--range", "1000000:5"]).ok().bytes(), b"");
    assert_eq!(a.run(&["cat", &up.link_to("empty")]).ok().bytes(), b"");
    assert_eq!(a.run(&["get", &link, "-o", "-"]).ok().bytes(), whole);
    a.run(&["cat", &link, "--range", "x"]).fails_with(2, "OFFSET+LENGTH");
    a.run(&["cat", &up.link_to("deep")]).fails_with(1, "directory");
}

#[test]
fn many_ranges_are_written_in_the_order_asked() {
    let a = Home::new();
    let up = lab(&a);
    let whole = noise(1_000_000, 7);
    let link = up.link_to("numbers");
    let (mut list, mut expected) = (String::from("# offset length\n\n"), whole[5..12].to_vec());
    for index in 0..2000usize {
        let offset = index * 7919 % 1_000_000;
        let length = index % 900;
        list.push_str(&format!("{offset}\t{length}\n"));
        expected.extend_from_slice(&whole[offset..(offset + length).min(whole.len())]);
    }
    let file = a.work("lists").join("ranges.txt");
    write(&file, list.as_bytes());
    let file = file.to_str().unwrap();
    let read = a.run(&["cat", &link, "--range", "5+7", "--ranges-file", file]).ok();
    assert!(read.bytes() == expected);
    write(std::path::Path::new(file), b"");
    assert_eq!(a.run(&["cat", &link, "--ranges-file", file]).ok().bytes(), b"");
    write(std::path::Path::new(file), b"1 2\n3 four\n");
    a.run(&["cat", &link, "--ranges-file", file]).fails_with(2, "ranges.txt:2");
    a.run(&["cat", &link, "--ranges-file", "missing"]).fails_with(7, "missing");
}

#[test]
fn listings_can_be_pasted_back() {
    let a = Home::new();
    let up = lab(&a);
    let listed = a.run(&["ls", "/lab"]).ok().stdout();
    assert_eq!(listed, "b=1%2541\ndeep/\nempty\nnumbers\none segment\n");
    for line in listed.lines().filter(|line| !line.ends_with('/')) {
        a.run(&["cat", &format!("/lab/{line}")]).ok();
    }
    let all = a.run(&["ls", "-R", &up.link]).ok().stdout();
    assert!(all.lines().any(|line| line == "deep/er/x"), "{all}");
    let long = a.run(&["ls", "-l", "/lab"]).ok().stdout();
    let line = long.lines().find(|line| line.contains("numbers")).unwrap();
    assert!(line.contains("1000000") && line.starts_with("-rw"), "{long}");
    let json = a.run(&["ls", "-l", "--json", "/lab"]).ok().stdout();
    assert_eq!(json.lines().count(), 5);
    for line in json.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["schema"], 1);
        assert!(value["name"].as_str().unwrap().starts_with("/lab/"), "{line}");
    }
}

#[test]
fn stat_tells_what_was_signed() {
    let a = Home::new();
    let _up = lab(&a);
    let text = a.run(&["stat", "--json", "/lab/numbers"]).ok().stdout();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let root = blake3::hash(&noise(1_000_000, 7)).to_hex().to_string();
    assert_eq!(value["size"], 1_000_000);
    assert_eq!(value["root"], root.as_str());
    assert!(value["version"].as_u64().unwrap() > 0);
    assert!(a.run(&["stat", "/lab/numbers"]).ok().stdout().contains(&root));
    let sum = a.run(&["stat", "--checksum", "b3", "/lab/numbers"]).ok().stdout();
    assert_eq!(sum, format!("{root}  /lab/numbers\n"));
    let sha = a.run(&["stat", "--checksum", "sha256", "/lab/empty"]).ok().stdout();
    assert!(sha.starts_with("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
}

#[test]
fn checksums_that_were_prepared_are_signed_and_others_computed() {
    let a = Home::new();
    let dir = a.work("lab");
    write(&dir.join("digits"), b"123456789");
    let path = dir.to_str().unwrap();
    let said = a.run(&["prepare", path, "--name", "/lab", "--checksums", "adler32,crc32"]).ok();
    assert!(said.stdout().contains("1 with new checksums"), "{}", said.stdout());
    let _up = a.up(&dir, "/lab");
    let stat = |more: &[&str]| {
        let text = a.run(&[&["stat", "--json", "/lab/digits"], more].concat()).ok().stdout();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let all = stat(&[]);
    assert_eq!((&all["adler32"], &all["crc32"]), (&"091e01de".into(), &"cbf43926".into()));
    assert_eq!(all.get("md5"), None);
    for (algorithm, sum, is_signed) in [
        ("adler32", "091e01de", true),
        ("crc32", "cbf43926", true),
        ("crc32c", "e3069283", false),
        ("md5", "25f9e794323b453885f5181f1b624d0b", false),
    ] {
        let one = stat(&["--checksum", algorithm]);
        assert_eq!(one["algorithm"], algorithm);
        assert_eq!((&one["checksum"], &one["signed"]), (&sum.into(), &is_signed.into()));
    }
    a.run(&["prepare", path, "--checksums", "crc16"]).fails_with(2, "adler32, crc32, crc32c");
    a.run(&["serve", path, "--name", "/lab", "--mirror", "--checksums", "md5"])
        .fails_with(2, "cannot be used with");
}

#[test]
fn a_publishers_own_tree_is_as_published_links_and_all() {
    let a = Home::new();
    let dir = a.work("d");
    write(&dir.join("x"), b"content");
    std::os::unix::fs::symlink("x", dir.join("link")).unwrap();
    let up = a.up(&dir, "/lab");
    let said = a.run(&["verify", "d", &up.link]).ok().stderr();
    assert!(said.contains("2 files"), "{said}");
}

#[test]
fn verify_lists_differences() {
    let a = Home::new();
    let up = lab(&a);
    a.run(&["get", "-r", &up.link, "-o", "copy"]).ok();
    a.run(&["verify", "copy", &up.link]).ok();
    let copy = a.path().join("copy");
    write(&copy.join("one segment"), &noise(8192, 9));
    write(&copy.join("extra"), b"");
    std::fs::remove_file(copy.join("deep/er/x")).unwrap();
    let out = a.run(&["verify", "copy", &up.link]).fails_with(5, "3");
    let text = out.stdout();
    for (path, word) in [("one segment", "differs"), ("extra", "extra"), ("deep/er/x", "missing")] {
        assert!(text.lines().any(|l| l.contains(path) && l.contains(word)), "{text}");
    }
}

#[test]
fn status_and_ping_tell_about_the_forwarder() {
    let a = Home::new();
    let _up = lab(&a);
    let text = a.run(&["status"]).ok().stdout();
    assert!(text.contains("/lab"), "{text}");
    let json = a.run(&["status", "--json"]).ok().stdout();
    assert!(json.lines().all(|line| line.contains("\"schema\":1")), "{json}");
    let ping = a.run(&["ping", "/lab", "-c", "2"]).ok().stdout();
    assert_eq!(ping.lines().filter(|line| line.contains("/lab")).count(), 2, "{ping}");
}
