<?php

declare(strict_types=1);

// The adapter of this client for conformance/check_clients.py: one request and one answer a line.

use Rankduel\Client;
use Rankduel\Duel;
use Rankduel\Outcome;
use Rankduel\Page;
use Rankduel\RankduelException;
use Rankduel\Window;

require __DIR__ . '/../autoload.php';

set_error_handler(static function (int $level, string $message, string $file, int $line): bool {
    // functions that are called with @ report their failure by their result
    if ((error_reporting() & $level) === 0) {
        return false;
    }
    throw new ErrorException($message, 0, $level, $file, $line);
});

/** A failure of the search that the client calls. */
final class ApplicationException extends Exception
{
}

function members(Duel|Page $result): array
{
    $json = json_encode($result, JSON_THROW_ON_ERROR);
    return json_decode($json, true) + ['json' => $json];
}

function window(array $given): Window
{
    $pinned = array_column($given['pinned'] ?? [], 'document', 'position');
    [$unit, $segment] = [$given['unit'] ?? null, $given['segment'] ?? null];
    return new Window($given['length'], $given['offset'] ?? 0, $pinned, $unit, $segment);
}

/** @param list<list<string>> $asked gets the rankers that each call asked for */
function rankings(array $given, array &$asked): array|Closure
{
    if ($given['form'] === 'all') {
        return $given['rankings'];
    }
    return static function (array $rankers) use ($given, &$asked): array {
        $asked[] = $rankers;
        if (array_intersect($rankers, $given['failing'] ?? []) !== []) {
            throw new ApplicationException();
        }
        $made = array_diff([...$rankers, ...$given['others'] ?? []], $given['missing'] ?? []);
        return array_intersect_key($given['rankings'], array_flip($made));
    };
}

function act(?Client &$client, string $what, array $given): array
{
    $asked = [];
    switch ($what) {
        case 'connect':
            $client = new Client(
                $given['url'],
                $given['experiment'],
                $given['control'],
                key: $given['key'] ?? null,
                deadline: $given['deadline_ms'] / 1000,
                reportSeconds: $given['report_ms'] / 1000,
                stock: $given['stock'],
                stockSeconds: $given['stock_seconds'],
            );
            return [];
        case 'check':
            return ['rankers' => $client->check()];
        case 'next_duel':
            return members($client->nextDuel($given['unit'] ?? null, $given['segment'] ?? null));
        case 'page':
            $page = $client->page(rankings($given, $asked), window($given));
            return ['asked' => $asked] + members(Page::fromJson(json_encode($page)));
        case 'more':
            $page = $client->more(Duel::fromJson($given['of']), rankings($given, $asked), window($given));
            return ['asked' => $asked] + members($page);
        case 'report_clicks':
            return ['status' => $client->reportClicks($given['of'], $given['clicks'], $given['final'])->value];
        case 'report_outcome':
            return ['status' => $client->reportOutcome($given['of'], Outcome::from($given['outcome']))->value];
        case 'report_metrics':
            return ['status' => $client->reportMetrics($given['of'], $given['metrics'])->value];
        case 'report_orders':
            return ['results' => $client->reportOrders($given['orders'])];
    }
    throw new LogicException("unknown request $what");
}

$client = null;
while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true, 32, JSON_THROW_ON_ERROR);
    try {
        $answer = ['ok' => (object) act($client, $request['do'], $request['with'])];
    } catch (RankduelException $error) {
        $answer = ['error' => [
            'reason' => $error->reason,
            'status' => $error->status,
            'retry_after' => $error->retryAfter,
            'retryable' => $error->isRetryable(),
        ]];
    } catch (ApplicationException) {
        $answer = ['error' => ['reason' => 'application']];
    } catch (InvalidArgumentException | ValueError $error) {
        $answer = ['error' => ['reason' => 'usage', 'detail' => (string) $error]];
    }
    echo json_encode($answer, JSON_THROW_ON_ERROR), "\n";
}
