import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { judgeCommand } from '../../packages/agent/src/permissions/shell/judge-command.ts'
import { noRules } from '../../packages/agent/src/permissions/rules.ts'
import { makeArena } from './shell/arena.ts'
import { runForReal } from './shell/bypasses.ts'
import { readCorpus } from './shell/corpus.ts'
import { CommandGrammar } from './shell/generate.ts'
import { mutate } from './shell/mutate.ts'
import { runApproved } from './shell/run-approved.ts'
import { missingPrograms, type Sandbox } from './shell/sandbox.ts'

export const name = 'shell'

/** How many commands share one start of the sandbox. */
const batchSize = 50
const workers = 2

/**
 * Commands that the judge lets pass are run for real, under the eyes of the kernel, and must have written nothing, connected nowhere and
 * started nothing that is not on the list. The commands of the corpus are run too, to show that they do what the judge must see.
 */
export async function run({ size, say, random, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const missing = missingPrograms()
  if (missing.length > 0) throw new Error(`The proof needs ${missing.join(', ')}`)
  const sandboxes = await makeSandboxes(await temporaryFolder())
  const problems: string[] = []
  const complain = (problem: string): void => {
    problems.push(problem)
    say(`PROBLEM ${problem}`)
  }

  const bypasses = readCorpus('shell-bypass.txt')
  const everyday = readCorpus('shell-everyday.txt')
  const count = size === 'ci' ? 2000 : 20_000
  const generated = generate({ count, bypasses, everyday, random })
  const passes = (command: string): boolean => approves(command, sandboxes[0]!)

  for (const command of bypasses.filter(passes)) complain(`a bypass was approved: ${JSON.stringify(command)}`)
  const approved = generated.filter(passes)
  const share = approved.length / generated.length
  say(`${generated.length} commands made up, ${approved.length} approved (${(share * 100).toFixed(1)} %)`)
  if (share < 0.2) complain('fewer than 20 % were approved: the rest proves nothing')

  const violations = await spread(approved, (batch, worker) => runApproved(sandboxes[worker]!, batch))
  for (const { command, what } of violations) complain(`${JSON.stringify(command)} ${what}`)
  say(`${approved.length} approved commands run, ${violations.length} did more than read`)

  const tried = size === 'ci' ? shuffled(bypasses, random).slice(0, 420) : bypasses
  const real = await spread(tried, (batch, worker) => runForReal(sandboxes[worker]!, batch))
  const canaries = real.filter(Boolean).length
  say(`${canaries} of ${tried.length} bypasses left the canary when they were run`)
  // A program that is missing here leaves none, and a busy machine may end one before it did.
  if (canaries < tried.length * 0.8) complain('more than a fifth of the bypasses are none here')

  return {
    ok: problems.length === 0,
    figures: {
      generated: generated.length,
      approved: approved.length,
      approvedShare: Number(share.toFixed(3)),
      violations: violations.length,
      bypasses: bypasses.length,
      bypassesRun: tried.length,
      canaries,
      problems: problems.length,
    },
  }
}

interface Generation {
  count: number
  bypasses: readonly string[]
  everyday: readonly string[]
  random: () => number
}

/** Half from the grammar, half by changing letters in what people and attackers write. */
function generate({ count, bypasses, everyday, random }: Generation): string[] {
  const grammar = new CommandGrammar(random)
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)]!
  const commands: string[] = []
  while (commands.length < count) {
    const kind = commands.length % 4
    const command =
      kind < 2
        ? grammar.command()
        : mutate(kind === 2 ? pick(everyday) : pick(bypasses), pick([...bypasses, ...everyday]), random)
    // A loop that starts things beside itself would fill the machine, which is no question of permission.
    if (!/\b(?:while|until|for)\b[^]*[^&]&(?![&>])/.test(command)) commands.push(command)
  }
  return commands
}

function shuffled(list: readonly string[], random: () => number): string[] {
  return list
    .map((item) => ({ item, place: random() }))
    .sort((left, right) => left.place - right.place)
    .map(({ item }) => item)
}

function approves(command: string, { arena, home }: Sandbox): boolean {
  const policy = { mode: 'ask', rules: noRules, cwd: arena, home } as const
  return judgeCommand(command, { cwd: arena, policy }).effect === 'allow'
}

async function makeSandboxes(folder: string): Promise<Sandbox[]> {
  // One path for all of them, so that what was approved in one holds in the other.
  const template = join(folder, 'template')
  await mkdir(template)
  await makeArena(template)
  return Promise.all(
    Array.from({ length: workers }, async (_, index) => {
      const own = join(folder, String(index))
      const sandbox = { arena: join(own, 'arena'), records: join(own, 'records'), home: join(own, 'home') }
      await mkdir(sandbox.records, { recursive: true })
      // Whoever uses npm has this folder.
      await mkdir(join(sandbox.home, '.npm'), { recursive: true })
      await cp(template, sandbox.arena, { recursive: true })
      return sandbox
    }),
  )
}

/** Does the work in batches, as many at once as there are workers. */
async function spread<T>(
  commands: readonly string[],
  work: (batch: readonly string[], worker: number) => Promise<T[]>,
): Promise<T[]> {
  const batches = Array.from({ length: Math.ceil(commands.length / batchSize) }, (_, index) =>
    commands.slice(index * batchSize, (index + 1) * batchSize),
  )
  const results: T[][] = []
  const next = batches.entries()
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      for (const [index, batch] of next) results[index] = await work(batch, worker)
    }),
  )
  return results.flat()
}
