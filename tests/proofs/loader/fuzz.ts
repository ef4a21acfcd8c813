import { SessionStore } from '@tapetree/session'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { BytesStore } from '../../corpus/bytes-store.ts'
import { Chance } from '../../corpus/chance.ts'
import { mutateLog } from '../../corpus/mutate-log.ts'
import { randomLog } from '../../corpus/random-log.ts'
import { checkReading, type CheckOptions } from './check-reading.ts'
import { checkQuickOpen } from './quick-open.ts'

/** A broken log that depends on its seed alone: one of some thousand valid logs, with things done to it. */
export function mutatedLog(seed: number): Uint8Array {
  return mutateLog(validLog(seed % validLogs), new Chance(randomFrom(seed)))
}

const validLogs = 4099
const madeLogs = new Map<number, string[]>()

function validLog(number: number): string[] {
  const lines = madeLogs.get(number) ?? randomLog(new Chance(randomFrom(number)))
  madeLogs.set(number, lines)
  return lines
}

export class Fuzz {
  readonly #bytes = new BytesStore()
  readonly #store = new SessionStore(this.#bytes)

  /** What does not hold when this log is read; if twice, also that both readings, and a quick one, are the same. */
  async try(seed: number, { isTwice, ...options }: CheckOptions & { isTwice: boolean }): Promise<string[]> {
    const bytes = mutatedLog(seed)
    this.#bytes.bytes = bytes
    const first = await checkReading(this.#store, { sessionId: 'fuzzed', bytes, options })
    if (!isTwice) return first.problems
    first.problems.push(...(await checkQuickOpen(bytes, new Chance(randomFrom(~seed)))))
    const second = await checkReading(this.#store, { sessionId: 'fuzzed', bytes, options })
    if (second.fingerprint() === first.fingerprint()) return first.problems
    return [...first.problems, 'a second reading gives something else']
  }
}
