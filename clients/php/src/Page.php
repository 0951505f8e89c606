<?php

declare(strict_types=1);

namespace Rankduel;

/** One page of results, and its duel. */
final class Page implements \JsonSerializable
{
    /**
     * @param Duel $duel the duel; its id is sent back with the clicks
     * @param list<Slot> $slots the results to show, best first
     * @param int $total number of slots of all pages of the list
     * @param bool $informative whether clicks on this page can favour one side
     */
    public function __construct(
        public readonly Duel $duel,
        public readonly array $slots,
        public readonly int $total,
        public readonly bool $informative,
    ) {
    }

    /** The id to send back with the clicks; null for a fallback to the control. */
    public function duelId(): ?string
    {
        return $this->duel->id;
    }

    /** @return list<string> the ids to show, best first */
    public function documents(): array
    {
        return array_map(static fn (Slot $slot): string => $slot->document, $this->slots);
    }

    /** The page that `json_encode` wrote. */
    public static function fromJson(string $json): self
    {
        $members = json_decode($json, true, 16, JSON_THROW_ON_ERROR);
        return self::fromMembers(Duel::fromMembers($members), $members);
    }

    /** @return array<string, mixed> for a session or a cache; keep it on the server */
    public function jsonSerialize(): array
    {
        $others = ['slots' => $this->slots, 'total' => $this->total, 'informative' => $this->informative];
        return $this->duel->jsonSerialize() + $others;
    }

    /**
     * @internal
     * @param array<string, mixed> $answer
     */
    public static function fromAnswer(array $answer, string $left, string $right): self
    {
        $duel = Duel::fromAnswer($answer, $left, $right);
        try {
            return self::fromMembers($duel, $answer);
        } catch (\TypeError $error) {
            throw RankduelException::notRankduel($error->getMessage());
        }
    }

    /** @param array<string, mixed> $members */
    private static function fromMembers(Duel $duel, array $members): self
    {
        $slots = array_map(
            static fn (array $slot): Slot =>
                new Slot($slot['position'] ?? null, $slot['document'] ?? null, $slot['token'] ?? null),
            $members['slots'] ?? null,
        );
        return new self($duel, $slots, $members['total'] ?? null, $members['informative'] ?? null);
    }

    /**
     * The control's ranking without repeats, with the pinned documents at their positions.
     *
     * @internal
     * @param list<mixed> $ranking without what is not text: a slot cannot have it
     */
    public static function ofControl(string $control, array $ranking, ?string $reason, Window $window): self
    {
        $pins = $window->pinned;
        $shown = array_fill_keys($pins, true);
        $documents = [];
        foreach (array_filter($ranking, is_string(...)) as $document) {
            if (isset($shown[$document])) {
                continue;
            }
            $shown[$document] = true;
            while (isset($pins[count($documents)])) {
                $position = count($documents);
                $documents[] = $pins[$position];
                unset($pins[$position]);
            }
            $documents[] = $document;
        }
        ksort($pins);
        $documents = [...$documents, ...array_values($pins)];
        $slots = [];
        $end = min(count($documents), $window->offset + $window->length);
        for ($position = max($window->offset, 0); $position < $end; $position++) {
            $slots[] = new Slot($position, $documents[$position], null);
        }
        return new self(Duel::ofControl($control, $reason), $slots, count($documents), false);
    }
}
