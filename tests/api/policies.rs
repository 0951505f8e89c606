//! The API's reports about every kind of policy: its assumptions, its missing parameters, and the
//! reason why it cannot be served.

use dueling_bandits::PolicySpec;
use serde_json::json;

use crate::support::TestDatabase;
use crate::support::service::Server;

on_sqlite! {
    every_kind_reports_its_assumptions_and_parameters
}

async fn every_kind_reports_its_assumptions_and_parameters(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut incomplete = 0;
    for (kind, description) in PolicySpec::KINDS {
        let mut body =
            json!({"name": kind, "rankers": ["a", "b", "c", "d"], "policy": {"kind": kind}});
        for needed in description.parameters.iter().filter(|parameter| parameter.default.is_none())
        {
            let pointer = format!("/policy/{}", needed.name);
            let problem = server.refuses(&body, &pointer).await;
            let detail = problem["errors"][0]["detail"].as_str().expect("a detail");
            for part in [*kind, needed.name, needed.meaning] {
                assert!(detail.contains(part), "{kind}: no {part:?} in {detail:?}");
            }
            body["policy"][needed.name] = json!(1000);
            incomplete += 1;
        }
        let answer = server.post("/v1/experiments", &body).await;
        let created = answer.json(201);
        assert_eq!(created["policy_assumes"], description.assumes, "{kind}");
        let read = server.experiment(kind).await;
        assert_eq!(read["policy_assumes"], description.assumes, "{kind}");
    }
    // pcomp, scomp and scomp2 have a horizon
    assert!(incomplete >= 3);
}
