<?php

declare(strict_types=1);

namespace Rankduel;

/** The two rankers to interleave. */
final class Duel implements \JsonSerializable
{
    private const NEVER = 4102444800.0; // the year 2100

    /**
     * @param ?string $id sent back with feedback; null for a fallback to the control
     * @param float $expiresAt Unix seconds; feedback after this time does not count
     * @param ?string $fallback the reason for a fallback to the control, or null: `timeout`,
     *     `unreachable`, `resting`, `not-rankduel`, `ranker-failed`, or the slug of a problem such as
     *     `experiment-paused`
     */
    public function __construct(
        public readonly string $left,
        public readonly string $right,
        public readonly ?string $id,
        public readonly float $expiresAt,
        public readonly ?string $fallback = null,
    ) {
    }

    /** Whether both are the same ranker. If so, show its ranking alone. */
    public function isSelfDuel(): bool
    {
        return $this->left === $this->right;
    }

    /** The duel that `json_encode` of a duel or of a page wrote. */
    public static function fromJson(string $json): self
    {
        return self::fromMembers(json_decode($json, true, 16, JSON_THROW_ON_ERROR));
    }

    /** @return array<string, mixed> for a session or a cache; keep it on the server */
    public function jsonSerialize(): array
    {
        return [
            'left' => $this->left,
            'right' => $this->right,
            'duel_id' => $this->id,
            'expires_at' => $this->expiresAt,
            'fallback' => $this->fallback,
        ];
    }

    /**
     * @internal
     * @param array<string, mixed> $members
     */
    public static function fromMembers(array $members): self
    {
        ['left' => $left, 'right' => $right, 'duel_id' => $id, 'expires_at' => $expiresAt] = $members;
        return new self($left, $right, $id, (float) $expiresAt, $members['fallback'] ?? null);
    }

    /**
     * @internal
     * @param array<string, mixed> $answer
     */
    public static function fromAnswer(array $answer, ?string $left = null, ?string $right = null): self
    {
        $texts = [$left ?? $answer['left'] ?? null, $right ?? $answer['right'] ?? null, $answer['duel_id'] ?? null];
        $expiresAt = date_create_immutable(is_string($answer['expires_at'] ?? null) ? $answer['expires_at'] : '-');
        if ($texts !== array_filter($texts, is_string(...)) || $expiresAt === false) {
            throw RankduelException::notRankduel('it lacks a member of a duel');
        }
        [$left, $right, $id] = $texts;
        // a page that takes no part in the experiment has no duel
        return new self($left, $right, $id === '' ? null : $id, (float) $expiresAt->format('U.u'));
    }

    /** @internal */
    public static function ofControl(string $control, ?string $reason): self
    {
        return new self($control, $control, null, self::NEVER, $reason);
    }
}
