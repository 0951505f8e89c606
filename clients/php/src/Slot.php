<?php

declare(strict_types=1);

namespace Rankduel;

/** One result of a page. */
final class Slot
{
    /**
     * @param int $position position in the whole list, from 0; page 2 continues page 1
     * @param string $document the document's id, as in the rankings
     * @param ?string $token identifies the slot in feedback, without revealing its ranker; null on a
     *     fallback page
     */
    public function __construct(
        public readonly int $position,
        public readonly string $document,
        public readonly ?string $token,
    ) {
    }
}
