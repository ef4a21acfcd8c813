import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { allFlips, describeFlip, flipIn, type Flip } from './bitflip/flip.ts'
import { foldBytes } from './bitflip/fold.ts'
import { intactLog, type IntactLog } from './bitflip/intact-log.ts'
import { judge } from './bitflip/judge.ts'
import { OnDisk } from './bitflip/on-disk.ts'

export const name = 'bitflip'
export const claim = 'A flipped bit is reported and costs at most the line that contains it.'
export const sizes = { ci: { shareOnDisk: 0.003 }, full: { shareOnDisk: 0.05 } }

/** Flips every bit of a log of 20 KB, one at a time, and reads it; a sample goes through real files and the whole store. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const log = intactLog()
  context.say(`a log of ${log.bytes.length} bytes in ${log.lines.length} lines`)
  const failures: string[] = []
  const fail = (flip: Flip, problems: readonly string[]): void => {
    if (problems.length > 0) failures.push(`${describeFlip(log, flip)}: ${problems.join('; ')}`)
  }
  const folded = foldEveryFlip(log, context, fail)
  const files = await openSome(log, context, fail)
  for (const failure of failures.slice(0, 40)) context.say(`FAILED ${failure}`)
  context.say(`${files} of them opened as real files, to read and to write; ${failures.length} failed`)
  return {
    ok: failures.length === 0,
    figures: { bytes: log.bytes.length, ...folded, files, failures: failures.length },
  }
}

type Fail = (flip: Flip, problems: readonly string[]) => void

/**
 * At size full every flipped log is read from its first byte to its last. At size ci that is done for one bit of each byte and
 * for every newline; for the others the three lines from the flipped one on are read and the rest is known.
 */
function foldEveryFlip(
  log: IntactLog,
  { size, say, random }: FigureContext,
  fail: Fail,
): Record<'flips' | 'wholeReads', number> {
  const bytes = log.bytes.slice()
  const counts = { header: 0, seq: 0, head: 0, body: 0, seal: 0, newline: 0 }
  let wholeReads = 0
  let chosenBit = 0
  for (const flip of allFlips(log)) {
    if (flip.bit === 0) chosenBit = Math.floor(random() * 8)
    const isWhole = size === 'full' || flip.bit === chosenBit || flip.part === 'newline'
    const range = isWhole
      ? { from: 0, to: log.lines.length }
      : { from: flip.line, to: Math.min(flip.line + 3, log.lines.length) }
    flipIn(bytes, flip)
    fail(flip, judge(log, flip, foldBytes(bytes, log.lines, range), { range, bytes }))
    flipIn(bytes, flip)
    counts[flip.part]++
    if (isWhole) wholeReads++
  }
  const flips = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const parts = Object.entries(counts).map(([part, count]) => `${count} in a ${part}`)
  say(`${flips} flips folded (${parts.join(', ')}), ${wholeReads} of them by reading the whole log`)
  return { flips, wholeReads }
}

/** Every bit of a newline and of a seq, every byte of a seal and of the header with one bit (and the case of each letter), and some of all others. */
async function openSome(log: IntactLog, context: FigureContext, fail: Fail): Promise<number> {
  const onDisk = await OnDisk.open(log, await context.temporaryFolder())
  const share = sizes[context.size].shareOnDisk
  let files = 0
  let chosenBit = 0
  for (const flip of allFlips(log)) {
    if (flip.bit === 0) chosenBit = Math.floor(context.random() * 8)
    if (!isSpecial(flip, chosenBit, context.size) && context.random() >= share) continue
    fail(flip, await onDisk.try(flip, { append: files % 10 === 0 }))
    files++
  }
  await onDisk.close()
  return files
}

function isSpecial({ part, bit }: Flip, chosenBit: number, size: FigureContext['size']): boolean {
  if (part === 'newline' || part === 'seq') return true
  if (part === 'seal') return size === 'full' || bit === chosenBit || bit === letterCaseBit
  return part === 'header' && (size === 'full' || bit === chosenBit)
}

const letterCaseBit = 5
