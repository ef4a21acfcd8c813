import type { Player, PlayerPosition } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'

const minPrefixLength = 4

/** Where `--from` is: the number of an entry, its id or how that begins, or a time. */
export function positionOf(from: string, player: Player): PlayerPosition {
  if (/^#?\d{1,9}$/.test(from)) return { seq: Number(from.replace('#', '')) }
  if (from.length >= minPrefixLength) {
    const event = player.events().find(({ lineId }) => lineId.startsWith(from))
    if (event) return { seq: event.seq }
  }
  if (/^\d{4}-\d{2}-\d{2}/.test(from) && !Number.isNaN(Date.parse(from))) return { time: from }
  throw new Failure(exitCodes.notFound, `There is nothing at ${JSON.stringify(harmlessLine(from))} in this session.`, {
    type: 'entry-not-found',
    why: 'A place is the number of an entry, its id, or a time such as 2026-11-15T12:00.',
    next: ['tapetree sessions show <session> --tree'],
  })
}
