import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { percentile } from '../scripts/figure/percentile.ts'
import { diffFrames } from './typing/diff-frames.ts'
import { Typist, type TypistOptions } from './typing/typist.ts'

export const name = 'typing'
export const claim =
  'Typing stays responsive in long sessions and during fast output, and scrolling in a diff of 5,000 lines.'
export const sizes = { ci: { rounds: 10 }, full: { rounds: 50 } }

const entries = 10_000
const tokensPerSecond = 200
const mostMs = 50
const keysInRound = 100

/** How long a key takes to the screen while a model streams into a long conversation, beside a program that only echoes. */
export async function run({ size, say, random }: FigureContext): Promise<FigureResult> {
  const { rounds } = sizes[size]
  await using echo = await start({ program: 'bare-echo.ts', until: 'ready', random })
  const args = [String(entries), String(tokensPerSecond)]
  await using shown = await start({ program: 'streaming-chat.ts', args, until: 'token', random })
  const bare: number[] = []
  const chat: number[] = []
  for (let round = 0; round < rounds; round++) {
    // In turn, so that a busy moment of the machine hits both.
    bare.push(...(await echo.type(keysInRound)))
    chat.push(...(await shown.type(keysInRound)))
  }
  const keys = chat.length
  const [p50, p99] = [percentile(chat, 0.5), percentile(chat, 0.99)]
  const [bareP50, bareP99] = [percentile(bare, 0.5), percentile(bare, 0.99)]
  say(
    `${keys} keys while ${tokensPerSecond} tokens a second stream into ${entries} entries: ` +
      `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, slowest ${Math.max(...chat).toFixed(1)} ms`,
  )
  say(`a program that only echoes: p50 ${bareP50.toFixed(1)} ms, p99 ${bareP99.toFixed(1)} ms`)
  const diff = await diffFrames(rounds * 4)
  const [diffP99, bareDiffP99] = [percentile(diff.shown, 0.99), percentile(diff.bare, 0.99)]
  say(
    `${diff.shown.length} frames of a diff of 5,000 lines: p50 ${percentile(diff.shown, 0.5).toFixed(1)} ms, ` +
      `p99 ${diffP99.toFixed(1)} ms; the same rows as plain text: p99 ${bareDiffP99.toFixed(2)} ms`,
  )
  const figures = {
    keys,
    p50_ms: round(p50),
    p99_ms: round(p99),
    p50_ratio: round(p50 / bareP50),
    p99_ratio: round(p99 / bareP99),
    diff_p99_ms: round(diffP99),
  }
  return { ok: p99 <= mostMs && diffP99 <= mostMs, figures }
}

async function start({ program, ...options }: TypistOptions): Promise<Typist> {
  const typist = await Typist.start({ ...options, program: join(import.meta.dirname, 'typing', program) })
  // The first keys find code that never ran.
  await typist.type(50)
  return typist
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
