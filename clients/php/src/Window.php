<?php

declare(strict_types=1);

namespace Rankduel;

/** The part of the list that a page shows. */
final class Window
{
    /**
     * @param int $length number of slots of the page
     * @param int $offset number of slots of the list before the page
     * @param array<int, string> $pinned documents at positions (from 0), independent of the rankings
     * @param ?string $unit an opaque id of the user or the session, of which the server stores a
     *     hash
     * @param ?string $segment a label of 1 to 32 bytes for the part of the traffic that the page
     *     belongs to, such as `mobile`
     */
    public function __construct(
        public readonly int $length = 10,
        public readonly int $offset = 0,
        public readonly array $pinned = [],
        public readonly ?string $unit = null,
        public readonly ?string $segment = null,
    ) {
    }

    /**
     * @internal
     * @return array<string, mixed>
     */
    public function body(): array
    {
        $body = ['length' => $this->length, 'offset' => $this->offset];
        foreach ($this->pinned as $position => $document) {
            $body['pinned'][] = ['position' => $position, 'document' => $document];
        }
        return $body + self::visit($this->unit, $this->segment);
    }

    /**
     * The members of a request that say whose page it is, without those that are null or empty.
     *
     * @internal
     * @return array<string, string>
     */
    public static function visit(?string $unit, ?string $segment): array
    {
        $members = ['unit' => $unit, 'segment' => $segment];
        return array_filter($members, static fn (?string $value): bool => $value !== null && $value !== '');
    }
}
