// Runs the steps of action.yml on this machine, as a runner of GitHub does: `npx node scripts/run-action.ts --prompt "Fix the tests."`. Artifacts are
// copied to the folder `artifacts`. Commands that a step calls, such as `gh`, come from the PATH.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { parse } from 'yaml'

interface Step {
  id?: string
  if?: string
  shell?: string
  run?: string
  uses?: string
  with?: Record<string, string>
  env?: Record<string, string>
}

interface Action {
  inputs: Record<string, { default?: string; required?: boolean }>
  outputs: Record<string, { value: string }>
  runs: { steps: Step[] }
}

export interface ActionOptions {
  inputs: Readonly<Record<string, string>>
  /** Of the job, with `GITHUB_EVENT_NAME`, `GITHUB_EVENT_PATH` and `GITHUB_REPOSITORY`. */
  env: Readonly<Record<string, string | undefined>>
  /** The checkout. */
  cwd: string
  /** Where artifacts are stored, each in a folder with its name. */
  artifacts: string
}

export interface ActionEnd {
  isSuccess: boolean
  outputs: Record<string, string>
  /** What the steps printed. */
  text: string
}

const root = resolve(import.meta.dirname, '..')

export async function runAction({ inputs, env, cwd, artifacts }: ActionOptions): Promise<ActionEnd> {
  const action = parse(readFileSync(join(root, 'action.yml'), 'utf8')) as Action
  const temp = mkdtempSync(join(tmpdir(), 'tapetree-action-'))
  const values = new Map<string, string>([['runner.temp', temp]])
  for (const [name, { default: fallback = '', required = false }] of Object.entries(action.inputs)) {
    if (required && inputs[name] === undefined) throw new Error(`The input ${name} is required.`)
    values.set(`inputs.${name}`, inputs[name] ?? fallback)
  }
  let isSuccess = true
  let printed = ''
  for (const step of action.runs.steps) {
    if (!isMet(step.if, { isSuccess, values })) continue
    if (step.uses?.startsWith('actions/upload-artifact@')) {
      const { name = '', path = '' } = step.with ?? {}
      if (existsSync(filled(path, values))) cpSync(filled(path, values), join(artifacts, name), { recursive: true })
    } else if (step.uses?.startsWith('actions/setup-node@')) {
      printed += `${step.uses} with ${JSON.stringify(step.with)}\n`
    } else if (step.run !== undefined && step.shell === 'bash') {
      const own = Object.entries(step.env ?? {}).map(([name, value]) => [name, filled(value, values)])
      const output = join(temp, 'output')
      writeFileSync(output, '')
      const runner = { GITHUB_ACTION_PATH: root, GITHUB_OUTPUT: output, RUNNER_TEMP: temp }
      const started = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step.run], {
        cwd,
        env: { ...env, ...runner, ...Object.fromEntries(own) },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const ended = once(started, 'close') as Promise<[number | null]>
      const [[code], ...said] = await Promise.all([ended, text(started.stdout), text(started.stderr)])
      printed += said.join('')
      if (code !== 0) isSuccess = false
      for (const line of readFileSync(output, 'utf8').split('\n')) {
        const [name = '', value = ''] = line.split(/=(.*)/s)
        if (name !== '') values.set(`steps.${step.id}.outputs.${name}`, value)
      }
    } else throw new Error(`This step cannot be run here: ${JSON.stringify(step)}`)
  }
  rmSync(temp, { recursive: true })
  const outputs = Object.entries(action.outputs).map(([name, { value }]) => [name, filled(value, values)])
  return { isSuccess, outputs: Object.fromEntries(outputs) as Record<string, string>, text: printed }
}

function filled(text: string, values: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$\{\{\s*([\w.-]+)\s*\}\}/g, (_, name: string) => values.get(name) ?? '')
}

/** The conditions that our steps have: comparisons with `&&` between them. Without `always()`, a step runs only if none before it failed. */
function isMet(
  condition: string | undefined,
  { isSuccess, values }: { isSuccess: boolean; values: ReadonlyMap<string, string> },
): boolean {
  const parts = condition?.split('&&').map((part) => part.trim()) ?? []
  if (!isSuccess && !parts.includes('always()')) return false
  return parts.every((part) => {
    if (part === 'always()') return true
    const [, name = '', operator, wanted] = /^([\w.-]+) (==|!=) '([^']*)'$/.exec(part) ?? []
    if (operator === undefined) throw new Error(`This condition cannot be judged here: ${part}`)
    return (values.get(name) === wanted) === (operator === '==')
  })
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { prompt: { type: 'string' }, model: { type: 'string' }, artifacts: { type: 'string' } },
  })
  const { prompt = '', model, artifacts = 'artifacts' } = values
  const inputs = { prompt, ...(model !== undefined && { model }) }
  const end = await runAction({ inputs, env: process.env, cwd: process.cwd(), artifacts })
  console.log(end.text, end.outputs)
  process.exitCode = end.isSuccess ? 0 : 1
}
