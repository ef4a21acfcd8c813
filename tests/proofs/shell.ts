import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { judgeCommand } from '../../packages/agent/src/permissions/judge-command.ts'
import type { RuleLayers } from '../../packages/agent/src/permissions/rules.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { Chance } from '../corpus/chance.ts'
import { AttackGrammar } from './shell/attacks.ts'
import { runForReal } from './shell/bypasses.ts'
import { readBypasses, readCorpus, readPlanted } from './shell/corpus.ts'
import { CommandGrammar } from './shell/generate.ts'
import { editHoles, holes, misdeeds } from './shell/holes.ts'
import { mutants, type Approves } from './shell/mutants.ts'
import { mutate } from './shell/mutate.ts'
import type { ApprovedMode, Case } from './shell/oracle.ts'
import { readProgramOptions } from './shell/program-options.ts'
import { runApproved, type Outcome } from './shell/run-approved.ts'
import { missingPrograms, resetCopy, type Sandbox } from './shell/sandbox.ts'
import {
  forbiddenFolder,
  linkedPaths,
  makeWorld,
  oddNames,
  workspaces,
  type Twin,
  type Workspace,
} from './shell/world.ts'

export const name = 'shell'
export const claim =
  'Commands that are approved automatically write nothing, start nothing else, connect nowhere and read no secrets.'
export const sizes = { ci: { generatedCommands: 1500 }, full: { generatedCommands: 100_000 } }

/** How many commands share one start of the sandbox. */
const batchSize = 100
const workers = 2
/** A run with fewer approved commands proves nothing. */
const leastShare = 0.25
/** Of the bypasses; a program that is missing here leaves no canary, and a busy machine may end one before it did. */
const leastCanaries = 0.8
/** Of the everyday commands. */
const mostAsked = 0.05

/**
 * Runs every command that the judge approves under `strace`: it must have written nothing, connected nowhere, started nothing that
 * is not on the list, and read no secret. Commands that are known to do harm are run, too, to show that the proof sees it; and so
 * are commands that a weaker judge would approve, to show that the commands which are made up would find its mistake.
 * `SHELL_COMMAND`, with `SHELL_WORKSPACE`, judges and runs one command.
 */
export async function run({ size, seed, say, random, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const missing = missingPrograms()
  if (missing.length > 0) throw new Error(`The proof needs ${missing.join(', ')}`)
  const folder = await temporaryFolder()
  const world = join(folder, 'world')
  makeWorld(world)
  const sandboxes = await makeSandboxes(folder, world)
  const chosen = process.env['SHELL_COMMAND']
  if (chosen !== undefined) return tryOne(caseFrom(chosen, process.env['SHELL_WORKSPACE']), sandboxes[0]!, say)
  const problems: string[] = []
  const complain = (problem: string): void => {
    problems.push(problem)
    say(`PROBLEM (seed ${seed}) ${problem}`)
  }

  const bypasses = readBypasses()
  const everyday = readCorpus('shell-everyday.txt')
  const count = sizes[size].generatedCommands
  const attacks = new AttackGrammar(new Chance(random), readProgramOptions())
  const generated = generate({ count, attacks, bypasses: bypasses.all, everyday, random })
  const gate = new Gate(world)

  const known = [...bypasses.all.map((command): Case => ({ workspace: 'arena', command })), ...holes]
  for (const each of known.filter((hole) => gate.approves(hole))) complain(`a bypass was approved: ${show(each)}`)
  for (const each of editHoles.filter((hole) => gate.approves(hole, 'accept-edits')))
    complain(`a bypass was approved as an edit: ${show(each)}`)
  const asked = everyday.filter((command) => !gate.approves({ workspace: 'plain', command }))
  say(`${asked.length} of ${everyday.length} everyday commands are asked about`)
  if (asked.length > everyday.length * mostAsked)
    complain(`too many everyday commands are asked about: ${asked.join('; ')}`)

  const approved = generated.filter((each) => gate.approves(each))
  const isPassed = new Set(approved)
  const refused = generated.filter((each) => !isPassed.has(each))
  const edits = refused.filter((each) => each.command.includes('>') && gate.approves(each, 'accept-edits'))
  for (const [command, error] of gate.failures) complain(`the judge failed at ${command}: ${String(error)}`)
  const share = approved.length / generated.length
  say(`${generated.length} commands made up, ${approved.length} approved (${percent(share)}), ${edits.length} as edits`)
  if (share < leastShare) complain(`fewer than ${percent(leastShare)} were approved: the rest proves nothing`)

  const startedAt = performance.now()
  const outcomes = [
    ...(await spread(approved, (batch, worker) => runApproved(sandboxes[worker]!, batch))),
    ...(await spread(edits, (batch, worker) => runApproved(sandboxes[worker]!, batch, { mode: 'accept-edits' }))),
  ]
  const numbers = new Map(generated.map((each, index) => [show(each), index + 1]))
  for (const outcome of outcomes.filter(isHarmful))
    complain(`command ${numbers.get(show(outcome)) ?? '?'}: ${show(outcome)} ${outcome.violations[0]!}`)
  const perSecond = outcomes.length / ((performance.now() - startedAt) / 1000)
  const started = sum(outcomes.map((outcome) => outcome.started))
  say(`${outcomes.length} approved commands started ${started} programs (${perSecond.toFixed(0)} commands/s)`)

  const tried = size === 'ci' ? shuffled(bypasses.canaries, random).slice(0, 150) : bypasses.canaries
  const left = await spread(tried, (batch, worker) => runForReal(sandboxes[worker]!, batch))
  const canaries = left.filter(Boolean).length
  say(`${canaries} of ${tried.length} bypasses left the canary when they were run`)
  if (canaries < tried.length * leastCanaries) complain('more than a fifth of the bypasses are none here')

  const mustBeSeen = await spread([...misdeeds, ...holes], (batch, worker) =>
    runApproved(sandboxes[worker]!, batch, { restores: true }),
  )
  const editsToSee = await runApproved(sandboxes[0]!, editHoles, { mode: 'accept-edits' })
  for (const outcome of [...mustBeSeen, ...editsToSee])
    if (!isHarmful(outcome)) complain(`nobody saw what ${show(outcome)} did`)

  const hunters = [...refused.slice(0, 2000), ...Array.from({ length: 8000 }, () => attacks.attack())]
  for (const [mutant, caught] of await huntMutants({ folder, hunters, sandboxes, gate })) {
    if (caught === undefined) complain(`no command was found that a judge would approve which ${mutant}`)
    else say(`a judge that ${mutant} is caught: ${show(caught)}`)
  }

  return {
    ok: problems.length === 0,
    figures: {
      seed,
      generated: generated.length,
      approved: approved.length,
      approvedShare: Number(share.toFixed(3)),
      edits: edits.length,
      ran: outcomes.length,
      perSecond: Math.round(perSecond),
      programsStarted: started,
      everydayAsked: Number((asked.length / everyday.length).toFixed(3)),
      bypasses: known.length,
      bypassesRun: tried.length,
      canaries,
      mutants: Object.keys(mutants).length,
      problems: problems.length,
    },
  }
}

function caseFrom(command: string, workspace = 'arena'): Case {
  const found = workspaces.find((each) => each === workspace)
  if (!found) throw new Error(`SHELL_WORKSPACE is one of ${workspaces.join(', ')}`)
  return { workspace: found, command }
}

async function tryOne(tried: Case, sandbox: Sandbox, say: FigureContext['say']): Promise<FigureResult> {
  const gate = new Gate(sandbox.world)
  const approvals = modes.filter((mode) => gate.approves(tried, mode))
  for (const error of gate.failures.values()) throw error
  const mode = approvals[0] ?? 'ask'
  const [outcome] = await runApproved(sandbox, [tried], { mode, restores: true })
  const violations = outcome?.violations ?? []
  say(`${show(tried)} is ${approvals.length > 0 ? `approved in mode ${mode}` : 'asked about'}`)
  for (const violation of violations) say(violation)
  return {
    ok: approvals.length === 0 || violations.length === 0,
    figures: { approved: approvals.length, violations: violations.length },
  }
}

const modes: readonly ApprovedMode[] = ['ask', 'accept-edits']

function show({ workspace, command }: Case): string {
  return `SHELL_WORKSPACE=${workspace} SHELL_COMMAND=${JSON.stringify(command)}`
}

function isHarmful({ violations }: Outcome): boolean {
  return violations.length > 0
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

interface Generation {
  count: number
  attacks: AttackGrammar
  bypasses: readonly string[]
  everyday: readonly string[]
  random: () => number
}

/** From the grammars, and by changing what people and attackers write. No two are the same. */
function generate({ count, attacks, bypasses, everyday, random }: Generation): Case[] {
  const chance = new Chance(random)
  const grammar = new CommandGrammar(random)
  const other = (): string => chance.of(chance.is(0.5) ? bypasses : everyday)
  const prepared = readPlanted()
  const inArena = (command: string): Case => ({ workspace: 'arena', command })
  const changed = ({ workspace, command }: Case): Case => ({ workspace, command: mutate(command, other(), random) })
  const composed = (): Case => {
    const parts = [chance.of(everyday), chance.of(everyday)]
    return { workspace: chance.of(workspaces), command: parts.join(chance.of([' && ', '; ', ' || ', ' | ', '\n'])) }
  }
  const planted = (): Case => {
    const workspace = chance.of<Workspace>(['links', 'odd', 'repos'])
    const words = chance.of(everyday).split(' ')
    const word = chance.of(
      workspace === 'links' ? linkedPaths : workspace === 'odd' ? oddNames : ['commondir', 'tracked/.env'],
    )
    words[chance.below(words.length)] = `'${word.replaceAll("'", `'\\''`)}'`
    return { workspace, command: words.join(' ') }
  }
  const make: readonly (() => Case)[] = [
    () => inArena(grammar.command()),
    () => inArena(grammar.command()),
    () => inArena(grammar.command()),
    () => inArena(grammar.command()),
    () => changed(inArena(chance.of(everyday))),
    () => changed(inArena(chance.of(everyday))),
    () => changed(inArena(chance.of(bypasses))),
    () => ({ workspace: chance.of(workspaces), command: chance.of(everyday) }),
    composed,
    composed,
    () =>
      changed(chance.is(0.5) ? chance.of(holes) : { workspace: chance.of(workspaces), command: chance.of(prepared) }),
    () => changed(attacks.attack()),
    planted,
    () => attacks.attack(),
    () => attacks.attack(),
    () => attacks.attack(),
    () => attacks.attack(),
    () => attacks.attack(),
  ]
  const cases = new Map<string, Case>()
  for (let index = 0; cases.size < count; index += 1) {
    const made = make[index % make.length]!()
    // A loop that starts things beside itself would fill the machine, which is no question of permission.
    if (!/\b(?:while|until|for)\b[^]*[^&]&(?![&>])/.test(made.command))
      cases.set(`${made.workspace} ${made.command}`, made)
  }
  return [...cases.values()]
}

function shuffled(list: readonly string[], random: () => number): string[] {
  return list
    .map((item) => ({ item, place: random() }))
    .sort((left, right) => left.place - right.place)
    .map(({ item }) => item)
}

/** The judge in a world, and the commands at which it failed. */
class Gate {
  readonly #world: string
  readonly #rules: RuleLayers
  readonly failures = new Map<string, unknown>()

  constructor(world: string) {
    this.#world = world
    const forbidden = join(world, forbiddenFolder)
    this.#rules = {
      user: [{ effect: 'deny', type: 'read', match: forbidden }],
      project: [],
      session: [],
      trustsProject: false,
    }
  }

  approves(tried: Case, mode: ApprovedMode = 'ask'): boolean {
    const cwd = join(this.#world, tried.workspace)
    const policy = { mode, rules: this.#rules, cwd, home: join(this.#world, 'home') }
    try {
      return judgeCommand(tried.command, { cwd, policy }).effect === 'allow'
    } catch (error) {
      this.failures.set(show(tried), error)
      return false
    }
  }
}

interface Hunt {
  folder: string
  gate: Gate
  hunters: readonly Case[]
  sandboxes: readonly Sandbox[]
}

/** For each weaker judge the first command that it approves, ours asks about, and that does harm. */
async function huntMutants({ folder, gate, hunters, sandboxes }: Hunt): Promise<Map<string, Case | undefined>> {
  const gates = new Map<Twin | undefined, Gate>([[undefined, gate]])
  for (const without of ['links', 'names', 'settings'] as const) {
    const twin = join(folder, `without-${without}`)
    makeWorld(twin, { without })
    gates.set(without, new Gate(twin))
  }
  const approves: Approves = (tried, twin) => gates.get(twin)!.approves(tried)
  const caught = new Map<string, Case | undefined>(Object.keys(mutants).map((mutant) => [mutant, undefined]))
  const next = Object.entries(mutants).values()
  await Promise.all(
    sandboxes.map(async (sandbox) => {
      for (const [mutant, judges] of next) {
        for (let at = 0; at < hunters.length && caught.get(mutant) === undefined; at += 500) {
          const candidates = hunters
            .slice(at, at + 500)
            .filter((tried) => judges(approves, tried) && !gate.approves(tried))
          const outcomes = await runApproved(sandbox, candidates, { restores: true })
          caught.set(mutant, outcomes.find(isHarmful))
        }
      }
    }),
  )
  return caught
}

async function makeSandboxes(folder: string, world: string): Promise<Sandbox[]> {
  return Promise.all(
    Array.from({ length: workers }, async (_, index) => {
      const own = join(folder, String(index))
      const sandbox = { world, copy: join(own, 'world'), records: join(own, 'records') }
      await mkdir(sandbox.records, { recursive: true })
      await mkdir(sandbox.copy, { recursive: true })
      resetCopy(sandbox)
      return sandbox
    }),
  )
}

/** Does the work in batches, as many at once as there are workers. */
async function spread<Item, Result>(
  items: readonly Item[],
  work: (batch: readonly Item[], worker: number) => Promise<Result[]>,
): Promise<Result[]> {
  const batches = Array.from({ length: Math.ceil(items.length / batchSize) }, (_, index) =>
    items.slice(index * batchSize, (index + 1) * batchSize),
  )
  const results: Result[][] = []
  const next = batches.entries()
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      for (const [index, batch] of next) results[index] = await work(batch, worker)
    }),
  )
  return results.flat()
}
