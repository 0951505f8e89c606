//! The forms of the changes that ask for values.

use maud::{Markup, html};

use super::action::{Action, Subject};
use super::form::{Errors, Fields, Step, Values, step_button, token_field};
use super::{methods, policies};

/// The values that a form starts with. `chosen` is the ranker that a link has chosen, if any.
pub(super) fn initial(action: Action, subject: &Subject, chosen: Option<&str>) -> Values {
    match action {
        Action::Conclude => {
            let champion = subject.champion().map(|(id, _)| id).unwrap_or_default();
            Values::default().with("winner", champion)
        }
        Action::Policy => Values::default().with("policy", subject.loaded.spec.policy.kind()),
        Action::Interleaving => methods::values(&subject.method().unwrap_or_default()),
        Action::Retire => Values::default().with("ranker", chosen.unwrap_or_default()),
        Action::Enlist | Action::Pause | Action::Resume | Action::Archive => Values::default(),
    }
}

/// The form of a change.
pub(super) fn form(
    action: Action,
    subject: &Subject,
    values: &Values,
    errors: &Errors,
    token: &str,
) -> Markup {
    let fields = Fields { values, errors };
    html! {
        form.fields method="post" action={ (subject.path()) "/" (action.slug()) } {
            (token_field(token))
            input type="hidden" name="version" value=(subject.record.version);
            @match action {
                Action::Conclude => { (ranker(&fields, subject, "winner", "Winner",
                    "The ranker that every request is answered with from then on.")) }
                Action::Retire => { (ranker(&fields, subject, "ranker", "Ranker",
                    "The ranker that is never shown again.")) }
                Action::Enlist => {
                    (fields.text("ranker", "Id of the ranker",
                        "The name by which your backend knows it, 1 to 128 characters; one that no ranker here has had."))
                    (fields.text("description", "Description",
                        "What makes it different, for people; you can leave it empty."))
                }
                Action::Policy => { (policies::fields(&fields)) }
                Action::Interleaving => { (methods::fields(&fields)) }
                Action::Pause | Action::Resume | Action::Archive => {}
            }
            div.buttons {
                (step_button(Step::Review, "Continue", "main"))
                a.button.other href=(subject.path()) { "Cancel" }
            }
        }
    }
}

fn ranker(fields: &Fields<'_>, subject: &Subject, name: &str, label: &str, help: &str) -> Markup {
    let active = subject.active();
    let options: Vec<_> = active.iter().map(|id| (*id, *id)).collect();
    fields.select(name, label, help, &options)
}
