//! The primary dies, and its synchronous standby takes its place.

use crate::audit::audit;
use crate::cluster::{Cluster, End};
use crate::proxy::{Mode, Proxy};
use crate::scene::Scene;
use crate::{rounds, some_moment};

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over() {
    let times = rounds(1);
    let mut primary = Cluster::start().await;
    primary.database("rankduel").await;
    let proxy = Proxy::to(primary.socket()).await;
    let mut scene = Scene::set(&proxy.url("rankduel"), 2).await;
    scene.open();
    for round in 0..times {
        scene.acknowledges(20).await;
        let standby = primary.standby().await;
        scene.acknowledges(40).await;
        some_moment(100).await;
        // the old primary is fenced off before the new one takes over: nobody may write to both
        if round % 2 == 0 {
            primary.end(End::Kill);
        } else {
            proxy.set(Mode::Cut);
            primary.end(End::Immediate);
        }
        standby.promote().await;
        proxy.switch_to(standby.socket());
        primary = standby;
    }
    scene.acknowledges(20).await;
    audit(scene, &primary.url("rankduel"), "failover to a synchronous standby", times).await;
}
