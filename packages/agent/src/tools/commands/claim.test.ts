import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readClaim, takeClaim } from './claim.ts'
import { ownIdentity } from './process-table.ts'

let spool: string
beforeEach(() => void (spool = mkdtempSync(join(tmpdir(), 'tapetree-claim-'))))
afterEach(() => rmSync(spool, { recursive: true }))

test('the first claim is taken once, and names its owner', () => {
  expect(takeClaim(spool, 1, { by: 'supervisor', mark: 'm' })).toBe(true)
  expect(takeClaim(spool, 1, { by: 'nobody' })).toBe(false)
  expect(readClaim(spool)).toEqual({ claim: { by: 'supervisor', mark: 'm', ...ownIdentity() }, next: 2 })
  expect(readdirSync(spool)).toEqual(['claim'])
})

test('a claim by nobody leaves the next claim available', () => {
  expect(readClaim(spool)).toEqual({ claim: undefined, next: 1 })
  takeClaim(spool, 1, { by: 'nobody' })
  expect(readClaim(spool)).toMatchObject({ claim: { by: 'nobody' }, next: 2 })
  expect(takeClaim(spool, 1, { by: 'supervisor', mark: 'late' })).toBe(false)
  expect(takeClaim(spool, 2, { by: 'supervisor', mark: 'm' })).toBe(true)
  expect(readClaim(spool)).toMatchObject({ claim: { by: 'supervisor', mark: 'm' }, next: 3 })
})

test('a claim is readable at once, and by its owner alone', () => {
  takeClaim(spool, 1, { by: 'nobody' })
  expect(JSON.parse(readFileSync(join(spool, 'claim'), 'utf8'))).toEqual({ by: 'nobody', ...ownIdentity() })
})

test('a truncated claim is held by an unknown process', () => {
  writeFileSync(join(spool, 'claim'), '{"by":"su')
  expect(readClaim(spool).claim).toEqual({ by: 'supervisor', mark: '', bootId: '', pid: 0, startTime: '' })
  expect(takeClaim(spool, 1, { by: 'nobody' })).toBe(false)
})

test('if the folder is gone nothing can be claimed', () => {
  const gone = join(spool, 'gone')
  expect(() => takeClaim(gone, 1, { by: 'nobody' })).toThrow('ENOENT')
  expect(existsSync(gone)).toBe(false)
})

test('of three processes that race for a claim exactly one gets it, five hundred times', async () => {
  const rounds = 500
  const racers = Array.from({ length: 3 }, () => new Racer())
  const won = [0, 0, 0]
  for (let round = 0; round < rounds; round++) {
    const folder = join(spool, `round-${round}`)
    mkdirSync(folder)
    const answers = await Promise.all(racers.map((racer) => racer.race(folder)))
    expect(answers.filter((hasIt) => hasIt)).toEqual([true])
    won[answers.indexOf(true)]!++
  }
  await Promise.all(racers.map((racer) => racer.close()))
  console.log(`claims won by each of three processes: ${won.join(', ')}`)
})

class Racer {
  readonly #process = spawn(process.execPath, [join(import.meta.dirname, 'testing/claim-racer.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  readonly #answers = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]()

  async race(folder: string): Promise<boolean> {
    this.#process.stdin.write(`${folder}\n`)
    const { value } = await this.#answers.next()
    return value === 'true'
  }

  async close(): Promise<void> {
    this.#process.stdin.end()
    await once(this.#process, 'exit')
  }
}
