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
     */
    public function __construct(
        public readonly int $length = 10,
        public readonly int $offset = 0,
        public readonly array $pinned = [],
        public readonly ?string $unit = null,
    ) {
        if ($length < 0 || $offset < 0) {
            throw new \InvalidArgumentException("length is $length and offset $offset; they must not be negative");
        }
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
        if ($this->unit !== null) {
            $body['unit'] = $this->unit;
        }
        return $body;
    }
}
