import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownIdentity, type ProcessIdentity } from './process-table.ts'

/**
 * Decides who runs a command. A supervisor claims it to run it. An agent that finds no supervisor claims it as
 * `nobody`: then the command never began, and a supervisor that runs it later must take the next claim.
 */
export type Claim = ProcessIdentity & ({ by: 'supervisor'; mark: string } | { by: 'nobody' })

export type Claimant = { by: 'supervisor'; mark: string } | { by: 'nobody' }

/** Takes an unclaimed number: of all concurrent attempts, in any process, one succeeds. */
export function takeClaim(spool: string, number: number, claimant: Claimant): boolean {
  const claim: Claim = { ...claimant, ...ownIdentity() }
  const written = JSON.stringify(claim)
  const path = join(spool, claimName(number))
  const prepared = join(spool, `preparing-${randomBytes(6).toString('hex')}`)
  try {
    // Creating a link fails if it exists, as with O_EXCL, and a claim is never seen partly written.
    writeFileSync(prepared, written, { mode: 0o600 })
    linkSync(prepared, path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    if (!hasNoLinks(error)) throw error
    return createExclusively(path, written)
  } finally {
    rmSync(prepared, { force: true })
  }
}

/** The newest claim, and the number of the next one if it is not a supervisor's. */
export function readClaim(spool: string): { claim: Claim | undefined; next: number } {
  let claim: Claim | undefined
  for (let number = 1; ; number++) {
    const found = parseClaim(spool, number)
    if (!found) return { claim, next: number }
    claim = found
    if (claim.by === 'supervisor') return { claim, next: number + 1 }
  }
}

function claimName(number: number): string {
  return number === 1 ? 'claim' : `claim.${number}`
}

function parseClaim(spool: string, number: number): Claim | undefined {
  try {
    return JSON.parse(readFileSync(join(spool, claimName(number)), 'utf8')) as Claim
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    // It is claimed, but the claimant is unknown.
    if (error instanceof SyntaxError) return { by: 'supervisor', mark: '', bootId: '', pid: 0, startTime: '' }
    throw error
  }
}

function createExclusively(path: string, written: string): boolean {
  try {
    writeFileSync(path, written, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** Some file systems do not support links. */
function hasNoLinks(error: unknown): boolean {
  return ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(codeOf(error) ?? '')
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}
