import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NetworkKeeper, probeSandbox, Sandbox } from '@tapetree/agent/sandbox'
import { noRules } from '@tapetree/agent/permissions'
import { startCommand } from '../packages/agent/src/tools/commands/command.ts'
import { commandEnvironment } from '../packages/agent/src/tools/commands/environment.ts'
import { dismissSupervisor } from '../packages/agent/src/tools/commands/supervisor-process.ts'
import { compare } from '../scripts/figure/compare.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'

export const name = 'sandbox'
export const claim =
  'The sandbox adds at most 20 ms to a command, and at most 5 % to a command of 2 s. The time to look at the folders counts.'
export const sizes = { ci: { commands: 9, longCommands: 5 }, full: { commands: 200, longCommands: 15 } }

const most = { addedMs: 20, longRatio: 1.05 }

/** Files, programs and waiting, about 2 s on a quiet machine: a command that only sleeps would hide what a box costs. */
const longCommand = `for each in $(seq 120); do cp package.json copy-$each; cat copy-* >/dev/null; rm copy-$each; done; sleep 1.2`

/** The same commands under the same supervisor, bare and in the box, in turn. */
export async function run({ size, say }: FigureContext): Promise<FigureResult> {
  const support = await probeSandbox()
  if (support.type === 'none') throw new Error(`${support.reason} ${support.repair}`)
  const { commands, longCommands } = sizes[size]
  // Not below /tmp, which every box replaces.
  const folder = realpathSync(mkdtempSync(join(process.cwd(), 'node_modules/.sandbox-bench-')))
  const [work, home] = [join(folder, 'work'), join(folder, 'home')]
  makeProject(work)
  mkdirSync(join(home, '.npm'), { recursive: true })
  const network = new NetworkKeeper({
    folder: join(folder, 'network'),
    bwrap: support.path,
    rules: noRules,
    idleMs: 100,
  })
  const sandbox = await Sandbox.open({ folders: [work], home, keep: join(folder, 'keep'), support, network })
  let count = 0
  /**
   * The time to prepare the box, and from the start of the command to its end as its supervisor measures it. The start of the supervisor is
   * left out: it is the same for both, and a session starts it before it is needed.
   */
  const timeOf = async (command: string, { isBoxed }: { isBoxed: boolean }): Promise<number> => {
    const spool = join(folder, `spool-${++count}`)
    const start = performance.now()
    const box = isBoxed ? await sandbox.box(work) : undefined
    const preparedMs = performance.now() - start
    const env = commandEnvironment({ PATH: process.env['PATH'], HOME: home }, { set: box?.env ?? {} })
    const order = { spool, command, cwd: work, env, deadlineMs: 60_000, ...(box && { box: box.argv }) }
    const outcome = await (await startCommand(order)).wait()
    if (outcome.type !== 'ended' || outcome.exit.code !== 0)
      throw new Error(`${command} failed: ${JSON.stringify(outcome)}`)
    rmSync(spool, { recursive: true })
    return preparedMs + outcome.exit.durationMs
  }
  const measure = (label: string, command: string, rounds: number) =>
    compare({
      label,
      rounds,
      say,
      bare: () => timeOf(command, { isBoxed: false }),
      ours: () => timeOf(command, { isBoxed: true }),
    })
  try {
    const figures: Record<string, number> = {}
    const added: number[] = []
    for (const [figure, command] of Object.entries({ true: 'true', git_status: 'git status', npm_test: 'npm test' })) {
      const { bare, ours, ratio } = await measure(command, command, commands)
      added.push(ours - bare)
      // Only the ratio is gated: a busy machine stretches both sides of it.
      figures[`${figure}_added_ms`] = Math.round((ours - bare) * 10) / 10
      figures[`${figure}_ratio`] = Math.round(ratio * 100) / 100
    }
    const { ratio } = await measure('a command of 2 s', longCommand, longCommands)
    const ok = added.every((addedMs) => addedMs <= most.addedMs) && ratio <= most.longRatio
    return { ok, figures: { ...figures, long_ratio: Math.round(ratio * 1000) / 1000 } }
  } finally {
    await network.close()
    await dismissSupervisor()
    rmSync(folder, { recursive: true })
  }
}

function makeProject(work: string): void {
  mkdirSync(join(work, 'src'), { recursive: true })
  writeFileSync(
    join(work, 'package.json'),
    JSON.stringify({ name: 'small', scripts: { test: 'node --test src/sum.test.js' } }),
  )
  writeFileSync(
    join(work, 'src/sum.test.js'),
    `require('node:test')('adds', () => require('node:assert').equal(1 + 1, 2))\n`,
  )
  execFileSync('git', ['init', '-q', work])
}
