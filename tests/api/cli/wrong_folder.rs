//! A command that is called in a folder without a database says so, and creates none.

use std::path::Path;

use crate::support::server::{outcome, rankduel};

/// Arguments of the commands that need some. One that is missing here fails.
const ARGUMENTS: [(&str, &[&str]); 6] = [
    ("export", &["search"]),
    ("keys create", &["backend", "--scope", "read"]),
    ("keys revoke", &["0a1b2c"]),
    ("keys rotate", &["0a1b2c"]),
    ("pages", &["search"]),
    ("prune", &["search", "--yes"]),
];
/// The commands that may create a database.
const CREATE: [&str; 4] = ["demo", "import", "migrate", "serve"];

/// The commands without commands of their own, such as `keys create`, from the manual pages.
fn commands(folder: &Path) -> Vec<String> {
    let (code, _, error) =
        outcome(rankduel(&["man", "--output", folder.to_str().expect("a path")]));
    assert_eq!(code, Some(0), "{error}");
    let pages = std::fs::read_dir(folder).expect("the pages").map(|page| page.expect("a page"));
    let names: Vec<String> = pages
        .filter_map(|page| {
            let name = page.file_name().into_string().expect("a name");
            Some(name.strip_prefix("rankduel-")?.strip_suffix(".1")?.to_owned())
        })
        .filter(|name| !name.split('-').any(|word| word == "help"))
        .collect();
    let within = |name: &str, group: &str| Some(name.strip_prefix(group)?.strip_prefix('-')?.len());
    let leaves = names.iter().filter(|name| !names.iter().any(|it| within(it, name).is_some()));
    leaves
        .map(|name| match names.iter().find_map(|group| within(name, group)) {
            Some(own) => name[..name.len() - own - 1].to_owned() + " " + &name[name.len() - own..],
            None => name.clone(),
        })
        .collect()
}

#[test]
fn no_command_creates_a_database_where_it_is_called() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let commands = commands(elsewhere.path());
    assert!(commands.len() >= 20 && commands.contains(&"keys create".to_owned()), "{commands:?}");
    let mut refused = 0;
    for command in commands.iter().filter(|command| !CREATE.contains(&command.as_str())) {
        let words: Vec<&str> = command.split(' ').collect();
        let (_, help, _) = outcome(rankduel(&[&words[..], &["--help"]].concat()));
        if !help.contains("--database-url") {
            continue;
        }
        let arguments = ARGUMENTS.iter().find(|(of, _)| of == command).map_or(&[][..], |of| of.1);
        let folder = tempfile::tempdir().expect("a folder");
        let mut call = rankduel(&[&words[..], arguments].concat());
        call.current_dir(&folder);
        let (code, printed, error) = outcome(call);
        let path = folder.path().canonicalize().expect("a path").join("rankduel.db");
        let says = format!(
            "rankduel: there is no database {}; set RANKDUEL_DATABASE_URL\n",
            path.display()
        );
        assert_eq!((code, &*printed, error), (Some(1), "", says), "{command}");
        let left = std::fs::read_dir(&folder).expect("the folder").count();
        assert_eq!(left, 0, "{command} leaves files");
        refused += 1;
    }
    assert!(refused >= 11, "{refused} commands");
}

/// The database of each change is in the output, and its password is not.
#[test]
fn a_command_that_changes_something_names_its_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let mut call = rankduel(arguments);
        call.current_dir(&folder);
        let (code, printed, messages) = outcome(call);
        (code, printed + &messages)
    };
    let path = folder.path().canonicalize().expect("a path").join("rankduel.db");
    let names_it = |text: &str| text.contains(&path.display().to_string());
    let (code, text) = run(&["migrate"]);
    assert!(code == Some(0) && names_it(&text), "{text}");
    for arguments in [
        &["keys", "create", "backend", "--scope", "read"][..],
        &["keys", "rotate", "0a1b2c"],
        &["keys", "revoke", "0a1b2c"],
        &["signing-keys", "rotate"],
        &["signing-keys", "retire"],
        &["prune", "search", "--yes"],
        &["import", "/dev/null"],
    ] {
        let (_, text) = run(arguments);
        assert!(names_it(&text), "{arguments:?}: {text}");
    }
    for arguments in [&["keys", "list"][..], &["signing-keys", "list"], &["verify"]] {
        assert_eq!(run(arguments).0, Some(0), "{arguments:?}");
    }
    let url = "postgres://rankduel:secret-word@127.0.0.1:1/search?sslmode=disable";
    let (code, text) = run(&["keys", "create", "a", "--scope", "read", "--database-url", url]);
    assert!(code == Some(1) && text.contains("127.0.0.1:1/search"), "{text}");
    assert!(!text.contains("secret-word"), "{text}");
}

/// `import` creates what it imports into.
#[test]
fn an_import_needs_no_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/0.1.0/pcomp.export");
    let run = |arguments: &[&str]| {
        let mut call = rankduel(arguments);
        call.current_dir(&folder);
        outcome(call)
    };
    let (code, _, error) = run(&["import", file.to_str().expect("a path"), "--as", "search"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(run(&["verify", "search"]).0, Some(0));
}
