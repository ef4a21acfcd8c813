import { SessionStore } from '@tapetree/session'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { BytesStore } from '../../corpus/bytes-store.ts'
import { Chance } from '../../corpus/chance.ts'
import { mutateLog } from '../../corpus/mutate-log.ts'
import { randomLog } from '../../corpus/random-log.ts'
import { checkReading } from './check-reading.ts'

export interface FuzzFailure {
  /** Makes the same file again: `mutatedLog(seed)`. */
  seed: number
  problems: string[]
}

/** A broken log that depends on its seed alone. */
export function mutatedLog(seed: number): Uint8Array {
  const chance = new Chance(randomFrom(seed))
  return mutateLog(randomLog(chance), chance)
}

export class Fuzz {
  readonly #bytes = new BytesStore()
  readonly #store = new SessionStore(this.#bytes)

  /** Reads one broken log; some of them twice, which must give the same. */
  async try(seed: number, options: { twice: boolean }): Promise<FuzzFailure | undefined> {
    const bytes = mutatedLog(seed)
    const before = Buffer.from(bytes).toString('latin1')
    this.#bytes.bytes = bytes
    const problems: string[] = []
    try {
      const first = await checkReading(this.#store, 'fuzzed', bytes)
      problems.push(...first.problems)
      if (options.twice) {
        const second = await checkReading(this.#store, 'fuzzed', bytes)
        if (second.fingerprint !== first.fingerprint) problems.push('a second reading gives something else')
      }
    } catch (error) {
      problems.push(`thrown: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
    if (Buffer.from(bytes).toString('latin1') !== before) problems.push('the bytes were changed')
    return problems.length === 0 ? undefined : { seed, problems }
  }
}
