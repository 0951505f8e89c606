//! Receiving orders.

use std::sync::Arc;

use tracing::Instrument as _;

use super::content::{Order, OrderReceipt};
use super::events::{NamedOrder, Names};
use crate::service::Service;
use crate::service::change::refuse_archived;
use crate::service::error::ServiceError;
use crate::service::units::UnitHasher;
use crate::telemetry::export;
use rankduel_engine::cohorts::SLACK_MS;
use rankduel_engine::experiment_spec::OrderMeasure;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::metrics::OrderStatus;
use rankduel_store::events::Status;
use rankduel_store::{Appended, ListFilter, LogEntry, NewEvent, Nonce};

/// Approximate nanoseconds to hash an order, without its lines.
const ORDER_NANOSECONDS: usize = 1_500;
/// Approximate nanoseconds that each line adds.
const LINE_NANOSECONDS: usize = 400;
/// Events that are appended at once. A file of orders leaves room for others in the queue.
const EVENTS_AT_ONCE: usize = 1000;
/// Experiments that are read at once.
const READ_AT_ONCE: u32 = 100;

/// The experiment with this name, if it takes orders.
pub(crate) async fn counting_one(
    service: &Service,
    name: &str,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    let loaded = service.experiment(name).await?;
    loaded.with_record(refuse_archived)?;
    match loaded.spec.decide_by {
        Some(_) => Ok(loaded),
        None => Err(ServiceError::NoOrders(format!(
            "experiment `{name}` has no `decide_by`: clicks decide it"
        ))),
    }
}

/// Every experiment of a list that can count orders now. An error if orders decide none of them.
pub(crate) async fn counting(
    service: &Service,
    filter: &ListFilter,
) -> Result<Vec<Arc<LoadedExperiment>>, ServiceError> {
    let (mut counting, mut are_late, mut after) = (Vec::new(), false, String::new());
    let filter = ListFilter { spec_with: "\"decide_by\":", ..filter.clone() };
    loop {
        let page = service.engine.store.experiments(&filter, &after, READ_AT_ONCE).await?;
        let is_end = page.len() < READ_AT_ONCE as usize;
        if let Some(last) = page.last() {
            after.clone_from(&last.name);
        }
        for record in &page {
            let loaded = service.experiment(&record.name).await?;
            match loaded.spec.decide_by {
                None => {}
                Some(_) if can_count(service, &loaded)? => counting.push(loaded),
                Some(_) => are_late = true,
            }
        }
        match is_end {
            false => {}
            true if counting.is_empty() && !are_late => {
                return Err(ServiceError::NoOrders(
                    "no experiment that this key includes has `decide_by`, or all are archived"
                        .into(),
                ));
            }
            true => return Ok(counting),
        }
    }
}

/// Whether an order that comes now can count: pages of two rankers or of one alone are shown, or
/// were a short time ago. A basket may open after the last of them, because clicks arrive later.
fn can_count(service: &Service, loaded: &LoadedExperiment) -> Result<bool, ServiceError> {
    let (status, changed_at) = loaded.with_record(|record| (record.status, record.updated_at));
    let are_shown = match status {
        Status::Running => true,
        Status::Paused => false,
        Status::Concluded => loaded.spec.watch > 0.0 || loaded.spec.alone > 0.0,
    };
    let ends_at = changed_at + loaded.spec.answer_window_ms() + SLACK_MS;
    Ok(are_shown || service.now_ms() < ends_at || loaded.fold()?.has_open_baskets())
}

/// Receive orders in each of these experiments; in none, all are late. Returns one result for each
/// order, in order, once all that count are durable. After an error, some may be durable: repeat
/// the request.
pub(crate) async fn receive(
    service: &Service,
    experiments: &[Arc<LoadedExperiment>],
    orders: Vec<Result<Order, OrderReceipt>>,
) -> Result<Vec<OrderReceipt>, ServiceError> {
    let mut good = Vec::with_capacity(orders.len());
    let kept: Vec<Result<usize, OrderReceipt>> = orders
        .into_iter()
        .map(|order| {
            good.push(order?);
            Ok(good.len() - 1)
        })
        .collect();
    let good = Arc::new(good);
    // only where money decides does an order need its value
    let lacks: Vec<_> = good.iter().map(Order::missing_value).collect();
    let mut statuses = vec![Vec::with_capacity(experiments.len()); good.len()];
    for loaded in experiments {
        let decide_by = loaded.spec.decide_by.as_ref();
        let by_money = decide_by.is_some_and(|it| it.by == OrderMeasure::Money);
        let takes = |at: &usize| !by_money || lacks[*at].is_none();
        let taken: Vec<usize> = (0..good.len()).filter(takes).collect();
        for (at, status) in receive_in(service, loaded, &good, taken).await? {
            statuses[at].push(status);
        }
    }
    let receipt = |kept: Result<usize, _>| match kept {
        Err(receipt) => receipt,
        Ok(at) => match &lacks[at] {
            Some(error) if statuses[at].is_empty() && !experiments.is_empty() => {
                OrderReceipt::invalid(error.clone())
            }
            _ => OrderReceipt::of(&statuses[at]),
        },
    };
    let receipts: Vec<OrderReceipt> = kept.into_iter().map(receipt).collect();
    for receipt in &receipts {
        service.engine.metrics.order(receipt.status);
    }
    Ok(receipts)
}

/// Receive the orders at these places in one experiment. Returns a result for each place.
async fn receive_in(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    orders: &Arc<Vec<Order>>,
    taken: Vec<usize>,
) -> Result<Vec<(usize, OrderStatus)>, ServiceError> {
    let lines = taken.iter().filter_map(|&at| orders[at].placed.as_ref());
    let lines: usize = lines.map(|placed| placed.lines.len()).sum();
    let nanoseconds = taken.len() * ORDER_NANOSECONDS + lines * LINE_NANOSECONDS;
    let names =
        Names { units: UnitHasher::of(loaded), seed: loaded.with_record(|record| record.seed) };
    let orders = Arc::clone(orders);
    let name = move || taken.into_iter().map(|at| (at, names.order(&orders[at]))).collect();
    let named: Vec<(usize, NamedOrder)> = service.run_by_cost(nanoseconds, name).await?;
    let counted = counted(service, loaded, &named).await?;
    let (mut late, mut fresh) = (Vec::new(), Vec::new());
    for ((at, order), is_counted) in named.into_iter().zip(counted) {
        if is_counted { &mut late } else { &mut fresh }.push((at, order.event));
    }
    let nonces: Vec<_> = late.iter().map(|(_, event)| event.nonce).collect();
    let found = find(service, loaded, &nonces).await?.into_iter();
    let of_late = |((at, event), entry): ((_, NewEvent), Option<LogEntry>)| match entry {
        None => (at, OrderStatus::Late),
        Some(entry) if event.event.repeats(&entry.event) => (at, OrderStatus::Duplicate),
        Some(_) => (at, OrderStatus::Conflict),
    };
    let mut statuses: Vec<_> = late.into_iter().zip(found).map(of_late).collect();
    while !fresh.is_empty() {
        let rest = fresh.split_off(fresh.len().min(EVENTS_AT_ONCE));
        let (places, events): (Vec<_>, Vec<_>) =
            std::mem::replace(&mut fresh, rest).into_iter().unzip();
        let append = service.engine.writer.append(loaded, events).instrument(export::append_span());
        for (at, appended) in places.into_iter().zip(append.await?) {
            let status = match appended {
                Appended::Recorded(_) => OrderStatus::Recorded,
                Appended::Duplicate(_) => OrderStatus::Duplicate,
                Appended::Conflict(_) => OrderStatus::Conflict,
                Appended::TooLate(_) => OrderStatus::Late,
                Appended::Archived | Appended::Missing => {
                    return Err(ServiceError::not_appended(&loaded.name, appended));
                }
            };
            statuses.push((at, status));
        }
    }
    Ok(statuses)
}

/// Of each order, whether all that it could count for has counted.
async fn counted(
    service: &Service,
    loaded: &LoadedExperiment,
    orders: &[(usize, NamedOrder)],
) -> Result<Vec<bool>, ServiceError> {
    if !can_count(service, loaded)? {
        return Ok(vec![true; orders.len()]);
    }
    let (mut counted, mut gone) = (Vec::with_capacity(orders.len()), Vec::new());
    {
        let fold = loaded.fold()?;
        // nothing was shown before the experiment was created
        let created_at = loaded.with_record(|record| record.created_at);
        let complete_until = fold.run().cohorts().complete_until().max(created_at);
        for (at, (_, order)) in orders.iter().enumerate() {
            counted.push(match order.at {
                // a line meets pages that were issued at its time or shortly before
                Some(time) => time.saturating_add(SLACK_MS) < complete_until,
                None => {
                    if !fold.holds_order(order.order.0) {
                        gone.push((at, order.nonce));
                    }
                    false
                }
            });
        }
    }
    // a cancellation of an order that is not held: the order has counted, or has yet to come
    let nonces: Vec<_> = gone.iter().map(|(_, nonce)| *nonce).collect();
    let found = find(service, loaded, &nonces).await?;
    for ((at, _), entry) in gone.into_iter().zip(found) {
        counted[at] = entry.is_some();
    }
    Ok(counted)
}

async fn find(
    service: &Service,
    loaded: &LoadedExperiment,
    nonces: &[Nonce],
) -> Result<Vec<Option<LogEntry>>, ServiceError> {
    match nonces.is_empty() {
        true => Ok(Vec::new()),
        false => Ok(service.engine.store.find(loaded.id, nonces).await?),
    }
}
