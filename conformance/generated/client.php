<?php

// Create, duel, page, feedback and verdict with the client of openapi-generator for PHP.

declare(strict_types=1);

use RankduelApi\Api\{DuelsApi, ExperimentsApi, ResultsApi};
use RankduelApi\{ApiException, Configuration};
use RankduelApi\Model\{
    ConcludeAt, ConcludeAtChange, ExperimentChange, FeedbackStatus, InterleaveBody, Metric,
    NewExperimentBody, OnDrift, One, Outcome, PolicySpec, Problem, Status, VerdictState
};

[, $generated, $url, $name] = $argv;
require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class) use ($generated): void {
    $file = $generated . strtr(substr($class, strlen('RankduelApi')), '\\', '/') . '.php';
    is_file($file) && require $file;
});
function refused(callable $request): Problem
{
    try {
        throw new LogicException('accepted: ' . $request());
    } catch (ApiException $error) {
        return $error->getResponseObject();
    }
}

$configuration = (new Configuration())->setHost($url);
$experiments = new ExperimentsApi(null, $configuration);
$duels = new DuelsApi(null, $configuration);
$results = new ResultsApi(null, $configuration);

$made = $experiments->create(new NewExperimentBody([
    'name' => $name, 'rankers' => ['a', 'b', 'c'], 'control' => 'a', 'owner' => 'generated', 'answer_window_seconds' => 0,
    'drift' => OnDrift::OFF,
    'metrics' => [new Metric(['name' => 'latency_ms', 'cap' => 1000, 'limit' => 400])],
    'policy' => new PolicySpec(['kind' => 'd-ts-verdict']), 'conclude_at' => new ConcludeAt(['max_duels' => 10_000]),
]));
assert($made->getStatus() === Status::RUNNING && $made->getOwner() === 'generated' && $made->getControl() === 'a');
for ($clicked = $decided = 0; $clicked + $decided < 10;) {
    $duel = $duels->nextDuel($name);
    if ($duel->getSelfDuel()) {
        continue;
    }
    if ($decided < $clicked) {
        $outcome = $duel->getLeft() === 'a' ? Outcome::LEFT : Outcome::RIGHT;
        $answer = new One(['duel_id' => $duel->getDuelId(), 'outcome' => $outcome]);
        $decided++;
    } else {
        $lists = ['left' => ['d1', 'd2', 'd3'], 'right' => ['d3', 'd1', 'd2']];
        $page = $duels->interleave($name, new InterleaveBody(['duel_id' => $duel->getDuelId(), 'length' => 3, ...$lists]));
        assert(count($page->getSlots()) === 3);
        $answer = new One(['duel_id' => $page->getDuelId(), 'clicks' => [0]]);
        $clicked++;
    }
    $answer->setMetrics(['a' => ['latency_ms' => 12]]);
    assert($duels->feedback($name, $answer)->getStatus() === FeedbackStatus::RECORDED);
}
$found = $results->verdict($name);
assert($found->getDuels() === 10 && $found->getState() === VerdictState::OPEN);
$change = new ExperimentChange(['conclude_at' => new ConcludeAtChange(['max_duels' => 10])]);
assert($experiments->change($name, '*', $change)->getConcludeAt()->getMaxDuels() === 10);
while ($experiments->read($name)->getStatus() !== Status::CONCLUDED);
$concluded = $results->verdict($name)->getConcluded();
assert($concluded->getAutomatic() && in_array($concluded->getWinner(), ['a', 'b', 'c'], true));
assert(refused(fn () => $experiments->read('missing'))->getType() === '/problems/experiment-not-found');
assert(refused(fn () => $experiments->callList(null, 'nowhere'))->getErrors()[0]->getName() === 'cursor');
