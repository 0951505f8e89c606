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
refuses(static fn () => new Window(-1));

// nobody listens at this port: the control's ranking, whatever its ids look like
$client = new Client('http://127.0.0.1:1', 'search', '7', deadline: 60.0);
$page = $client->page(['7' => ['1', '2', '1', '3'], '8' => []], new Window(2, 1));
same(['2', '3'], $page->documents());
same([3, '7', 'unreachable'], [$page->total, $page->duel->left, $page->duel->fallback]);
$page = $client->page(['7' => ["\xff"]]);
same([["\xff"], 'invalid-request'], [$page->documents(), $page->duel->fallback]);
echo "php: all passed\n";
