import type { FakeRequest, FakeStep } from '@tapetree/agent/testing'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runCli } from '../../../packages/cli/src/cli.ts'
import { placesOf } from '../../../packages/cli/src/host/places.ts'
import { fakeHome, type FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { testIo } from '../../../packages/cli/src/testing/test-io.ts'
import {
  compareFiles,
  editAs,
  gitHash,
  makeWorkspace,
  mergedFiles,
  readFiles,
  writeFiles,
  type Files,
} from './files.ts'

const program = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url))
const editor = fileURLToPath(new URL('edit.ts', import.meta.url))
/** How long a run takes after its first request to a model, about. */
const maxMs = 3000

/** The command runs three variants of a scripted model and is killed. Then a person cleans up as the command says. */
export async function playRun(options: {
  folder: string
  random: () => number
}): Promise<{ problems: string[]; phase: string }> {
  const { folder, random } = options
  const problems: string[] = []
  mkdirSync(folder)
  await using home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  const { cwd: work } = home
  withModels(home)
  makeWorkspace(work, { random, git: random() < 0.5 })
  const git = gitHash(work)
  const base = readFiles(work)
  const wanted = new Map<string, Files>()
  for (const model of models) {
    const files = editAs('variant', { files: base, random })
    wanted.set(model, files)
    writeFileSync(join(folder, `${model}.json`), JSON.stringify([...files]))
  }
  home.provider.script(({ body }: FakeRequest) => answer(body, folder))
  const user = editAs('user', { files: base, random })
  const choice = Math.floor(random() * models.length)
  const args = ['run', '--json', '--variants', '3', '--model', models.map((model) => `fake/${model}`).join(',')]
  const chooses = ['--check', 'test -f .gitignore', '--choose', String(choice + 1), '--conflicts', 'keep', 'Edit.']
  const child = spawn(process.execPath, ['-C', '@tapetree/source', program, ...args, ...chooses], {
    cwd: work,
    env: home.env,
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const ended = once(child, 'exit')
  await Promise.race([home.provider.request(1), ended])
  // The copies have the files as they were. From now on the user works in the folder.
  writeFiles(work, user)
  await Promise.race([wait(random() * maxMs), ended])
  const phase = child.exitCode === null ? 'in between' : 'after the end'
  child.kill('SIGKILL')
  await ended

  const tapetree = async (...command: string[]): Promise<{ code: number; out: string; err: string }> => {
    const io = testIo({ env: home.env, cwd: work, home: home.home })
    const code = await runCli(command, io)
    return { code, out: io.out(), err: io.err() }
  }
  const listed = async (): Promise<{ session_id: string; state: string; variants: { number: number } | null }[]> =>
    (JSON.parse((await tapetree('variants', 'list', '--json')).out) as { copies: [] }).copies
  const left = await listed()
  const mine = left.find(({ variants }) => variants?.number === choice + 1)
  const isMerged = compareFiles(readFiles(work), mergedFiles({ base, variant: at(choice), user })).length === 0
  let expected = isMerged ? mergedFiles({ base, variant: at(choice), user }) : user
  if (mine && mine.state !== 'incomplete' && !mine.state.startsWith('discarded')) {
    if (mine.state === 'interrupted' || mine.state === 'ended') {
      // A variant that was killed goes on in its copy.
      const resumed = await tapetree('run', '--session', mine.session_id, 'Go on.')
      if (resumed.code !== 0) problems.push(`a variant could not go on: ${resumed.err}`)
    }
    const chosen = await tapetree('variants', 'choose', mine.session_id, '--conflicts', 'keep')
    if (chosen.code !== 0) problems.push(`a variant could not be chosen: ${chosen.err}`)
    expected = mergedFiles({ base, variant: at(choice), user })
  }
  await tapetree('variants', 'remove', '--all')
  problems.push(
    ...compareFiles(readFiles(work), expected).map((problem) => `${problem} (${mine?.state ?? 'not listed'})`),
  )
  const { copies } = placesOf(home)
  if (existsSync(copies) && readdirSync(copies).length > 0) problems.push('a copy is left')
  if (gitHash(work) !== git) problems.push('the git folder was changed')
  return { problems: problems.slice(0, 3), phase: `${phase} (${mine?.state ?? 'none left'})` }

  function at(index: number): Files {
    return wanted.get(models[index] ?? '') ?? new Map()
  }
}

const models = ['model-1', 'model-2', 'model-3']

function withModels(home: FakeHome): void {
  const file = join(home.env['TAPETREE_HOME'] ?? '', 'settings.json')
  const settings = JSON.parse(readFileSync(file, 'utf8')) as { providers: { fake: { models: object[] } } }
  const [model] = settings.providers.fake.models
  settings.providers.fake.models = models.map((id) => ({ ...model, id }))
  writeFileSync(file, JSON.stringify(settings))
}

/** The model edits everything with one command, as often as it is asked. */
function answer(body: Record<string, unknown>, folder: string): FakeStep {
  const messages = body['messages'] as { role: string }[]
  if (messages.at(-1)?.role === 'tool') return { type: 'answer', content: [{ type: 'text', chunks: ['Done.'] }] }
  const list = join(folder, `${String(body['model'])}.json`)
  const command = `'${process.execPath}' -C @tapetree/source '${editor}' '${list}'`
  const call = {
    type: 'tool_call' as const,
    id: `c${messages.length}`,
    name: 'bash',
    chunks: [JSON.stringify({ command })],
  }
  return { type: 'answer', content: [call] }
}
