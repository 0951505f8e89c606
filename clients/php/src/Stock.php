<?php

declare(strict_types=1);

namespace Rankduel;

/**
 * Up to `size` duels. Each is used once, and not later than `maxAge` seconds after the request.
 *
 * A server that does not know `count` refuses it once; from then on the stock makes single requests,
 * as many as the deadline allows.
 *
 * @internal
 */
final class Stock
{
    private bool $refusesCount = false;
    /** @var list<array{float, Duel}> */
    private array $duels = [];

    public function __construct(
        private readonly Server $server,
        private readonly int $size,
        private readonly float $maxAge,
    ) {
    }

    /** The oldest fresh duel. If there is none, the stock is filled first, within this time. */
    public function take(float $seconds): Duel
    {
        while ($this->duels !== []) {
            [$requestedAt, $duel] = array_shift($this->duels);
            $now = microtime(true);
            if ($now - $requestedAt <= $this->maxAge && $duel->expiresAt > $now) {
                return $duel;
            }
        }
        $requestedAt = microtime(true);
        $found = $this->request($requestedAt + $seconds);
        $first = array_shift($found);
        $this->duels = array_map(static fn (Duel $duel): array => [$requestedAt, $duel], $found);
        return $first;
    }

    /** @return non-empty-list<Duel> */
    private function request(float $end): array
    {
        $found = [];
        if (!$this->refusesCount) {
            try {
                $answer = $this->server->ask('/next-duel', ['count' => $this->size], $end - microtime(true));
                $several = $answer['duels'] ?? [];
                if (is_array($several) && $several !== []) {
                    return array_map(self::duel(...), array_values($several));
                }
                $found[] = Duel::fromAnswer($answer);
            } catch (RankduelException $failed) {
                if ($failed->status !== 422) {
                    throw $failed;
                }
                $this->refusesCount = true;
            }
        }
        while (count($found) < $this->size && ($found === [] || microtime(true) < $end)) {
            try {
                $left = max(0.001, $end - microtime(true));
                $found[] = Duel::fromAnswer($this->server->ask('/next-duel', [], $left));
            } catch (RankduelException $failed) {
                if ($found === []) {
                    throw $failed;
                }
                break;
            }
        }
        return $found;
    }

    private static function duel(mixed $answer): Duel
    {
        return Duel::fromAnswer(is_array($answer) ? $answer : []);
    }
}
