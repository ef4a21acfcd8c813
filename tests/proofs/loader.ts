import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { Fuzz } from './loader/fuzz.ts'

export const name = 'loader'

export async function run(context: FigureContext): Promise<FigureResult> {
  const executions = Number(process.env['N'] ?? 60000)
  const fuzz = new Fuzz()
  let failures = 0
  const seen = new Map<string, number>()
  let slowest = 0
  for (let execution = 0; execution < executions; execution++) {
    const start = performance.now()
    const failure = await fuzz.try((context.seed + execution) >>> 0, { twice: execution % 8 === 0 })
    slowest = Math.max(slowest, performance.now() - start)
    if (!failure) continue
    failures++
    const key = failure.problems[0]!.split('\n').slice(0, 3).join(' | ').replace(/\d+/g, 'N').slice(0, 260)
    if (!seen.has(key)) context.say(`${failure.seed}: ${key}`)
    seen.set(key, (seen.get(key) ?? 0) + 1)
  }
  for (const [key, n] of [...seen].sort((a, b) => b[1] - a[1])) context.say(`${n} x ${key}`)
  return { ok: failures === 0, figures: { executions, failures, slowest } }
}
