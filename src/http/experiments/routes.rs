//! The routes of experiments.

use utoipa_axum::routes;

use super::{archive, change, create, list, read};
use crate::access::Scope;
use crate::http::operation::Access;
use crate::http::problem::ProblemKind::{
    CannotReplay, ExperimentArchived, ExperimentExists, ExperimentNotFound, NotConcluded,
    PreconditionFailed, PreconditionRequired, RankersFixed,
};
use crate::http::routes::Routes;

const ADMIN: Access = Access::Scope(Scope::Admin);
const READ: Access = Access::Scope(Scope::Read);

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(routes!(create::create), ADMIN, &[ExperimentExists, ExperimentArchived])
        .operation(routes!(list::list), READ, &[])
        .operation(routes!(read::read), READ, &[ExperimentNotFound])
        .operation(
            routes!(change::change),
            ADMIN,
            &[
                ExperimentNotFound,
                ExperimentArchived,
                CannotReplay,
                RankersFixed,
                PreconditionFailed,
                PreconditionRequired,
            ],
        )
        .operation(
            routes!(archive::archive),
            ADMIN,
            &[ExperimentNotFound, NotConcluded, PreconditionFailed],
        )
}
