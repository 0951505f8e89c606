<?php

declare(strict_types=1);

namespace Rankduel;

/**
 * Up to `size` duels. Each is used once, and not later than `maxAge` seconds after the request.
 *
 * @internal
 */
final class Stock
{
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
        $found = $this->request($seconds);
        $first = array_shift($found);
        $this->duels = array_map(static fn (Duel $duel): array => [$requestedAt, $duel], $found);
        return $first;
    }

    /** @return non-empty-list<Duel> */
    private function request(float $seconds): array
    {
        $several = $this->server->ask('/next-duel', ['count' => $this->size], $seconds)['duels'] ?? [];
        if (!is_array($several) || $several === []) {
            throw RankduelException::notRankduel('it has no duels');
        }
        return array_map(self::duel(...), array_values($several));
    }

    private static function duel(mixed $answer): Duel
    {
        return Duel::fromAnswer(is_array($answer) ? $answer : []);
    }
}
