import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { judgeCommand } from '../../packages/agent/src/permissions/shell/judge-command.ts'
import { noRules } from '../../packages/agent/src/permissions/rules.ts'
import { makeArena } from './shell/arena.ts'
import { runForReal } from './shell/bypasses.ts'
import { readBypasses, readCorpus } from './shell/corpus.ts'
import { CommandGrammar } from './shell/generate.ts'
import { mutate } from './shell/mutate.ts'
import { runApproved } from './shell/run-approved.ts'
import { missingPrograms, type Sandbox } from './shell/sandbox.ts'

export const name = 'shell'

/** How many commands share one start of the sandbox. */
const batchSize = 50
const workers = 2
/** Of fewer approved commands a proof says nothing. */
const leastShare = 0.25
/** Of the bypasses; a program that is missing here leaves no canary, and a busy machine may end one before it did. */
const leastCanaries = 0.8

/**
 * Commands that the judge lets pass are run for real, under the eyes of the kernel, and must have written nothing, connected nowhere and
 * started nothing that is not on the list. The commands of the corpus are run too, to show that they do what the judge must see.
 * `SHELL_COMMAND` judges and runs one command and tells of it.
 */
export async function run({ size, seed, say, random, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const missing = missingPrograms()
  if (missing.length > 0) throw new Error(`The proof needs ${missing.join(', ')}`)
  const sandboxes = await makeSandboxes(await temporaryFolder())
  const chosen = process.env['SHELL_COMMAND']
  if (chosen !== undefined) return tryOne(chosen, sandboxes[0]!, say)
  const problems: string[] = []
  const complain = (problem: string): void => {
    problems.push(problem)
    say(`PROBLEM (seed ${seed}) ${problem}`)
  }

  const bypasses = readBypasses()
  const everyday = readCorpus('shell-everyday.txt')
  const count = size === 'ci' ? 2000 : 20_000
  const generated = generate({ count, bypasses: bypasses.all, everyday, random })
  const passes = (command: string): boolean => approves(command, sandboxes[0]!)

  for (const command of bypasses.all.filter(passes)) complain(`a bypass was approved: ${JSON.stringify(command)}`)
  const approved = generated.filter(passes)
  const share = approved.length / generated.length
  say(`${generated.length} commands made up, ${approved.length} approved (${(share * 100).toFixed(1)} %)`)
  if (share < leastShare) complain(`fewer than ${leastShare * 100} % were approved: the rest proves nothing`)

  const outcomes = await spread(approved, (batch, worker) => runApproved(sandboxes[worker]!, batch))
  for (const { command, violations } of outcomes)
    for (const violation of violations) complain(`${JSON.stringify(command)} ${violation}`)
  say(
    `${outcomes.length} approved commands were run and started ${sum(outcomes.map(({ started }) => started))} programs`,
  )

  const tried = size === 'ci' ? shuffled(bypasses.canaries, random).slice(0, 250) : bypasses.canaries
  const left = await spread(tried, (batch, worker) => runForReal(sandboxes[worker]!, batch))
  const canaries = left.filter(Boolean).length
  say(`${canaries} of ${tried.length} bypasses left the canary when they were run`)
  if (canaries < tried.length * leastCanaries) complain('more than a fifth of the bypasses are none here')

  for (const { command, violations } of await runApproved(sandboxes[0]!, misdeeds))
    if (violations.length === 0) complain(`nobody saw what ${JSON.stringify(command)} did`)

  return {
    ok: problems.length === 0,
    figures: {
      seed,
      generated: generated.length,
      approved: approved.length,
      approvedShare: Number(share.toFixed(3)),
      ran: outcomes.length,
      programsStarted: sum(outcomes.map(({ started }) => started)),
      bypasses: bypasses.all.length,
      bypassesRun: tried.length,
      canaries,
      problems: problems.length,
    },
  }
}

/** One of each kind that must be seen, so that a proof without problems had eyes. Last, since they change the folder. */
const misdeeds = [
  'touch C1',
  'echo hi > C2',
  'true | cat a.txt | tee C3 | true',
  'mkdir C4',
  'ln -s a.txt C5',
  'mv C5 C6',
  'rm C6',
  'chmod 600 a.txt',
  'touch a.txt',
  './p.sh',
  'bash -c :',
  'node -e 0',
  'echo hi | xargs env true',
  'cat < /dev/tcp/127.0.0.1/9',
  'echo hi > /dev/udp/127.0.0.1/9',
  'git gc -q',
  'ls & sh -c : & wait',
]

async function tryOne(command: string, sandbox: Sandbox, say: FigureContext['say']): Promise<FigureResult> {
  const isApproved = approves(command, sandbox)
  const [outcome] = await runApproved(sandbox, [command])
  const violations = outcome?.violations ?? []
  say(`${JSON.stringify(command)} is ${isApproved ? 'approved' : 'asked'}`)
  for (const violation of violations) say(violation)
  return {
    ok: !isApproved || violations.length === 0,
    figures: { approved: Number(isApproved), violations: violations.length },
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

interface Generation {
  count: number
  bypasses: readonly string[]
  everyday: readonly string[]
  random: () => number
}

/** Most from the grammar, the others by changing letters in what people and attackers write. No two are the same. */
function generate({ count, bypasses, everyday, random }: Generation): string[] {
  const grammar = new CommandGrammar(random)
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)]!
  const make = (kind: number): string => {
    if (kind < 5) return grammar.command()
    return mutate(kind < 7 ? pick(everyday) : pick(bypasses), pick([...bypasses, ...everyday]), random)
  }
  const commands = new Set<string>()
  while (commands.size < count) {
    const command = make(commands.size % 8)
    // A loop that starts things beside itself would fill the machine, which is no question of permission.
    if (!/\b(?:while|until|for)\b[^]*[^&]&(?![&>])/.test(command)) commands.add(command)
  }
  return [...commands]
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
