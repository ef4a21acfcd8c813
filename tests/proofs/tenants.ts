import { missingPostgres, PostgresServer } from '../../packages/session/src/testing/postgres-server.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { mutants } from './tenants/mutants.ts'
import { TenantDatabases } from './tenants/databases.ts'
import { TenantTrial } from './tenants/trial.ts'

export const name = 'tenants'
export const claim =
  'In a PostgreSQL database, no byte of a tenant reaches another one: not through hostile ids, not by SQL of the application.'
export const sizes = { ci: { calls: 20_000, mutants: 6 }, full: { calls: 1_000_000, mutants: Infinity } }

/**
 * Two tenants, one named like the beginning of the other, call the store with ids that both of them have, ids of the other one and
 * hostile ones. Each call must give what a store in memory with this tenant alone gives, and no byte of the other tenant. Then SQL is
 * sent as the application. Broken versions of the schema must be found.
 */
export async function run({ size, say, random }: FigureContext): Promise<FigureResult> {
  if (missingPostgres !== undefined) throw new Error(missingPostgres)
  await using databases = new TenantDatabases(await PostgresServer.start())
  const { calls } = sizes[size]
  const trial = await TenantTrial.start(databases, { random })
  const parts = 2
  for (let part = 1; part <= parts && trial.problems.length === 0; part++) {
    await trial.play(calls / parts)
    await trial.attack()
    say(`${part} of ${parts}: ${JSON.stringify(trial.figures)}`)
  }
  await trial.finish()
  const problems = [...trial.problems]
  const survivors: string[] = []
  const tried = Object.entries(mutants)
    .map((mutant) => ({ mutant, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, sizes[size].mutants)
  for (const {
    mutant: [mutant, change],
  } of tried) {
    const problem = await problemOf(await TenantTrial.start(databases, { random, change }))
    say(`${mutant.padEnd(62)} ${problem?.replaceAll('\n', ' ').slice(0, 110) ?? 'NOT CAUGHT'}`)
    if (problem === undefined) survivors.push(mutant)
  }
  for (const mutant of survivors) problems.push(`mutant "${mutant}" was not found`)
  for (const problem of problems.slice(0, 20)) say(`PROBLEM: ${problem}`)
  const { figures } = trial
  return {
    ok: problems.length === 0 && figures.calls >= calls,
    figures: {
      ...figures,
      mutants: tried.length,
      surviving: survivors.length,
      problems: problems.length,
    },
  }
}

/** In a few hundred calls and one attack a fault must show. */
async function problemOf(trial: TenantTrial): Promise<string | undefined> {
  for (let part = 0; part < 6 && trial.problems.length === 0; part++) {
    await trial.play(200)
    if (trial.problems.length === 0) await trial.attack()
  }
  await trial.finish()
  return trial.problems[0]
}
