<?php

declare(strict_types=1);

// Tests without a server. A failure ends the program with an error.

use Rankduel\Client;
use Rankduel\Duel;
use Rankduel\Page;
use Rankduel\Slot;
use Rankduel\Window;

require __DIR__ . '/../autoload.php';

function same(mixed $wanted, mixed $found): void
{
    if ($wanted != $found) {
        throw new Exception(var_export($found, true) . ' is not ' . var_export($wanted, true));
    }
}

function refuses(Closure $call): void
{
    try {
        $call();
    } catch (InvalidArgumentException) {
        return;
    }
    throw new Exception('wrong arguments are accepted');
}

$duel = new Duel('bm25', 'neural', 'AQ', 1.5);
$page = new Page($duel, [new Slot(0, '17', 't'), new Slot(1, "d\"\u{96ea}", null)], 2, true);
same($page, Page::fromJson(json_encode($page)));
same($duel, Duel::fromJson(json_encode($page)));
same($duel, Duel::fromJson(json_encode($duel)));

foreach (['rankduel:7171', 'ftp://rankduel', 'http://', 'http://host/?a=b', 'http://host/#a'] as $url) {
    refuses(static fn () => new Client($url, 'search', 'bm25'));
}
refuses(static fn () => new Client('http://host', 'search', 'bm25', key: "a\r\nb: c"));
refuses(static fn () => new Client('http://host', 'search', 'bm25', deadline: 0.0));
refuses(static fn () => new Client('http://host', 'search', 'bm25', stock: -1));
foreach (['deadline', 'reportSeconds', 'stockSeconds'] as $name) {
    foreach ([0.0, -1.0, NAN, INF] as $limit) {
        refuses(static fn () => new Client('http://host', 'search', 'bm25', ...[$name => $limit]));
    }
}
refuses(static fn () => new Client('http://host', 'search', 'bm25', stock: 1001));
ob_start();
var_dump(new Client('http://host', 'search', 'bm25', key: 'S3cret'));
same(false, str_contains((string) ob_get_clean(), 'S3cret'));

// nobody listens at this port: the control's ranking, whatever its ids look like
$client = new Client('http://127.0.0.1:1', 'search', '7', deadline: 60.0);
$page = $client->page(['7' => ['1', '2', '1', '3'], '8' => []], new Window(2, 1));
same(['2', '3'], $page->documents());
same([3, '7', 'unreachable'], [$page->total, $page->duel->left, $page->duel->fallback]);
$page = $client->page(['7' => ["\xff"]]);
same([["\xff"], 'invalid-request'], [$page->documents(), $page->duel->fallback]);

// a page, whatever the rankings, the callback and the arguments are
$fails = static fn () => throw new Exception('a callback that fails');
$client = new Client('http://127.0.0.1:1', 'search', '7', deadline: 60.0, onFallback: $fails);
foreach ([['1', null], [1, 2.5], ['1', ['id' => 2]], ['1', NAN], ['x' => '1']] as $ranking) {
    foreach ([['7' => $ranking], static fn (): array => ['7' => $ranking]] as $form) {
        same(['1'], $client->page($form)->documents());
    }
}
same([], $client->page(['7' => ['1']], new Window(-1, -1))->documents());
$page = $client->page(['7' => ['1'], '8' => '8']);
same([['1'], 'ranker-failed'], [$page->documents(), $page->duel->fallback]);
same('ranker-failed', $client->more(new Duel('7', '8', 'AQ', 1.5), ['7' => ['1'], '8' => '8'])->duel->fallback);
refuses(static fn () => $client->page(['7' => '7']));
refuses(static fn () => $client->page(static fn (): array => ['7' => '7']));
same('ignored', $client->reportClicks('', [0])->value);
echo "php: all passed\n";
