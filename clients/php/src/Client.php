<?php

declare(strict_types=1);

namespace Rankduel;

/**
 * One experiment of a rankduel server: requests the two rankings to interleave for a query, and
 * sends the clicks.
 *
 *     $rankduel = new Rankduel\Client('http://127.0.0.1:7171', 'search', 'bm25');
 *     $page = $rankduel->page(['bm25' => $bm25, 'neural' => $neural]);
 *     show($page->documents(), $page->duelId());
 *     $rankduel->reportClicks($duelId, [0, 3]);
 *
 * `page` always returns within the deadline. If the service does not answer in time, it returns the
 * control's ranking.
 */
final class Client
{
    /** Above any useful time limit. */
    private const LONGEST_LIMIT = 86400;
    /** The server issues no more duels at once. */
    private const MOST_DUELS = 1000;

    private readonly Server $server;
    private readonly ?Stock $stock;

    /**
     * @param string $control the ranker to show if rankduel does not answer in time
     * @param ?string $key an API key, if the server requires one
     * @param float $deadline time limit in seconds of a request for a duel or a page
     * @param float $reportSeconds time limit of a report, with all attempts
     * @param int $stock number of duels to request at once; 0 for single requests
     * @param float $stockSeconds time for which a duel of the stock may be used
     * @param ?\Closure(RankduelException): void $onFallback called with the error behind each
     *     fallback to the control
     */
    public function __construct(
        #[\SensitiveParameter] string $url,
        private readonly string $experiment,
        private readonly string $control,
        #[\SensitiveParameter] ?string $key = null,
        private readonly float $deadline = 0.05,
        private readonly float $reportSeconds = 10.0,
        int $stock = 0,
        float $stockSeconds = 5.0,
        private readonly ?\Closure $onFallback = null,
    ) {
        foreach (compact('deadline', 'reportSeconds', 'stockSeconds') as $name => $seconds) {
            if (!($seconds > 0 && $seconds <= self::LONGEST_LIMIT)) {
                $wanted = 'it must be a number of seconds above 0 and at most a day';
                throw new \InvalidArgumentException("$name is $seconds; $wanted");
            }
        }
        if ($stock < 0 || $stock > self::MOST_DUELS) {
            throw new \InvalidArgumentException("stock is $stock; it must be from 0 to " . self::MOST_DUELS);
        }
        if ($experiment === '' || $control === '') {
            throw new \InvalidArgumentException('the experiment and the control must have names');
        }
        $this->server = new Server(new Transport($url, $key), $experiment);
        $this->stock = $stock > 0 ? new Stock($this->server, $stock, $stockSeconds) : null;
    }

    /**
     * The rankers of the experiment. Call it when you deploy: it throws if the server, the experiment
     * or the key is wrong, or if the control is not one of the rankers, which otherwise shows only in
     * an outage. A key needs the scope `read` for it.
     *
     * @return list<string>
     * @throws RankduelException
     */
    public function check(): array
    {
        $rankers = $this->server->rankers($this->reportSeconds);
        if (in_array($this->control, $rankers, true)) {
            return $rankers;
        }
        $listed = implode(', ', $rankers);
        $detail = "control is $this->control, but the rankers of $this->experiment are $listed";
        throw new RankduelException('control-unknown', $detail);
    }

    /**
     * The two rankers to interleave. If rankduel does not answer in time, both are the control. A
     * duel with a unit or a segment is requested by itself, not taken from the stock.
     *
     * @param ?string $unit an opaque id of the user or the session, of which the server stores a
     *     hash
     * @param ?string $segment a label of 1 to 32 bytes for the part of the traffic that the page
     *     belongs to, such as `mobile`
     */
    public function nextDuel(?string $unit = null, ?string $segment = null): Duel
    {
        try {
            $body = Window::visit($unit, $segment);
            if ($this->stock !== null && $body === []) {
                return $this->stock->take($this->deadline);
            }
            return Duel::fromAnswer($this->server->ask('/next-duel', $body, $this->deadline));
        } catch (RankduelException $failed) {
            return Duel::ofControl($this->control, $this->fellBack($failed));
        }
    }

    /**
     * A page of two interleaved rankings. If rankduel does not answer in time, it has the control's
     * ranking.
     *
     * @param array<string, list<string>>|callable(list<string>): array<string, list<string>> $rankings
     *     the document ids of every ranker, best first; or a function that makes those of the rankers
     *     that it is called with. It is called once, with the one or two that rankduel selects. If it
     *     fails, or one of these is missing or not a list, the page has the control's ranking. For
     *     that, it is called again with the control, unless it had returned the control's ids, too.
     * @throws \InvalidArgumentException if the control's ranking is missing or not a list: there is
     *     nothing to show; if the function fails for it, its exception reaches you
     */
    public function page(array|callable $rankings, Window $window = new Window()): Page
    {
        if (is_callable($rankings)) {
            // with a stock, the unit and the segment go with the rankings alone
            $duel = $this->stock === null ? $this->nextDuel($window->unit, $window->segment) : $this->nextDuel();
            return $this->more($duel, $rankings, $window);
        }
        $control = $this->controlOf($rankings);
        try {
            $all = [];
            foreach (array_keys($rankings) as $ranker) {
                $all[$ranker] = self::sent($ranker, $rankings);
            }
            $body = $window->body() + ['rankings' => (object) $all];
            $answer = $this->server->ask('/next-duel', $body, $this->deadline);
            $duel = Duel::fromAnswer($answer);
            return Page::fromAnswer($answer, $duel->left, $duel->right);
        } catch (RankduelException $failed) {
            return Page::ofControl($this->control, $control, $this->fellBack($failed), $window);
        }
    }

    /**
     * A page of an earlier duel: the first page of a duel from `nextDuel`, or a later page of the
     * same list. Pass the same rankings and pins for every page of a duel. If rankduel does not answer
     * in time, or did not answer for the duel, the page has the control's ranking.
     *
     * @param array<string, list<string>>|callable(list<string>): array<string, list<string>> $rankings
     *     as those of `page`
     */
    public function more(Duel $of, array|callable $rankings, Window $window = new Window()): Page
    {
        if (!is_callable($rankings)) {
            $this->controlOf($rankings);
            $rankings = static fn (): array => $rankings;
        }
        $made = [];
        $reason = $of->fallback;
        if ($of->id !== null) {
            try {
                $made = self::madeFor($of, $rankings);
                return $this->interleaved($of, $made, $window);
            } catch (RankduelException $failed) {
                $reason = $this->fellBack($failed);
            }
        }
        if (!is_array($made[$this->control] ?? null)) {
            $made = $rankings([$this->control]);
        }
        return Page::ofControl($this->control, $this->controlOf($made), $reason, $window);
    }

    /** @return array<string, list<string>> */
    private static function madeFor(Duel $of, callable $rankings): array
    {
        $rankers = array_values(array_unique([$of->left, $of->right]));
        try {
            return (static fn (array $made): array => $made)($rankings($rankers));
        } catch (\Throwable $error) {
            $listed = implode(', ', $rankers);
            throw new RankduelException('ranker-failed', "$listed: {$error->getMessage()}", cause: $error);
        }
    }

    /** @param array<string, list<string>> $made */
    private function interleaved(Duel $of, array $made, Window $window): Page
    {
        $sides = ['left' => self::sent($of->left, $made), 'right' => self::sent($of->right, $made)];
        $body = $window->body() + ['duel_id' => $of->id] + $sides;
        return Page::fromAnswer($this->server->ask('/interleave', $body, $this->deadline), $of->left, $of->right);
    }

    /** @return list<mixed> the documents; numbers as text, because keys of arrays become numbers */
    private static function ids(int|string $ranker, mixed $ranking): array
    {
        if (!is_array($ranking)) {
            $type = get_debug_type($ranking);
            throw new \InvalidArgumentException("the ranking of $ranker is $type; it must be a list of document ids");
        }
        $isText = static fn (mixed $document): bool => is_int($document) || $document instanceof \Stringable;
        return array_map(
            static fn (mixed $document): mixed => $isText($document) ? (string) $document : $document,
            array_values($ranking),
        );
    }

    /**
     * @param array<string, list<string>> $rankings
     * @return list<mixed>
     */
    private static function sent(int|string $ranker, array $rankings): array
    {
        try {
            return self::ids($ranker, $rankings[$ranker] ?? null);
        } catch (\InvalidArgumentException $error) {
            throw new RankduelException('ranker-failed', $error->getMessage(), cause: $error);
        }
    }

    /**
     * @param array<string, list<string>> $rankings
     * @return list<mixed>
     */
    private function controlOf(array $rankings): array
    {
        $shown = 'which is shown if rankduel does not answer';
        return self::ids($this->control, $rankings[$this->control]
            ?? throw new \InvalidArgumentException("rankings lack the control, $this->control, $shown"));
    }

    /**
     * Reports clicks on the page of a duel; `[]` if there were none. Transient failures are repeated
     * while the time of a report lasts.
     *
     * Clicks that come after a final call are late and do not count. If you call it once for each
     * click, pass `final: false`: more clicks can then follow, in any order, and all clicks of a
     * duel together count as one outcome.
     *
     * @param ?string $duelId null is that of a fallback page, whose clicks are ignored
     * @param list<int|string|array{position?: int, document?: string, slot?: string, event?: string}> $clicks
     *     positions, document ids, or arrays with one of `position`, `document` and `slot`, and
     *     optionally an `event` such as `purchase`
     * @throws RankduelException if `isRetryable`, the same feedback may be accepted later
     */
    public function reportClicks(?string $duelId, array $clicks, bool $final = true): Status
    {
        return $this->report($duelId, ['clicks' => array_values($clicks), 'final' => $final]);
    }

    /**
     * Reports the outcome, if your own code merges the pages and credits the clicks.
     *
     * @throws RankduelException
     */
    public function reportOutcome(?string $duelId, Outcome $outcome): Status
    {
        return $this->report($duelId, ['outcome' => $outcome->value]);
    }

    /**
     * Reports values of the experiment's metrics, by ranker and metric. Report them for every page,
     * whether it is clicked or not: a value that does not come counts as the worst.
     *
     * @param array<string, array<string, int|float>> $metrics
     * @throws RankduelException
     */
    public function reportMetrics(?string $duelId, array $metrics): Status
    {
        $values = array_map(static fn (array $ofRanker): object => (object) $ofRanker, $metrics);
        return $this->report($duelId, ['metrics' => (object) $values]);
    }

    /**
     * Sends orders, at most 1,000, to an experiment that orders decide. Transient failures are
     * repeated like those of `reportClicks`; a repeat never counts twice.
     *
     * @param list<array{order_id: string, unit?: string, at?: string, cancelled?: bool,
     *     lines?: list<array{document: string, value?: int|float, quantity?: int}>}> $orders
     *     orders, or cancellations with `order_id` and `cancelled` alone. `unit` is that of the pages,
     *     and `at` the time of the order, such as `2026-11-21T18:03:11Z`
     * @return list<array{status: string, experiments?: int, detail?: string, pointer?: string}> for
     *     each order its status `recorded`, `duplicate`, `late`, `conflict` or `invalid`, and the
     *     `detail` of one that the server refuses
     * @throws RankduelException
     */
    public function reportOrders(array $orders): array
    {
        return $this->server->orders(array_values($orders), $this->reportSeconds);
    }

    /** @param array<string, mixed> $item */
    private function report(?string $duelId, array $item): Status
    {
        if ($duelId === null || $duelId === '') {
            return Status::Ignored;
        }
        return $this->server->report(['duel_id' => $duelId] + $item, $this->reportSeconds);
    }

    private function fellBack(RankduelException $failed): string
    {
        try {
            ($this->onFallback ?? static fn () => null)($failed);
        } catch (\Throwable) {
            // the page does not depend on it
        }
        return $failed->reason;
    }
}
