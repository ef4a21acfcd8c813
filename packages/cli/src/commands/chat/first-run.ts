import { registryModels } from '@tapetree/agent/models'
import { grantTrust, TrustStore, configFolder, type ProjectTrust } from '@tapetree/agent/settings'
import type { SessionStore } from '@tapetree/session'
import { readdir } from 'node:fs/promises'
import type { Io } from '../../command-line/io.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import { counted } from '../../text/amounts.ts'
import { sourceTitles, type FoundSession } from '../../import/import-source.ts'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import type { ChatServices, KeyProvider } from '../../tui/chat-services.ts'
import type { SetupUi } from '../../tui/chat-options.ts'
import { enterKey } from '../../tui/chat/enter-key.ts'

/** The first minutes of a new user, on the screen of the chat: trust, a key or a local model, the model with its price. */
interface FirstRun {
  ui: SetupUi
  io: Pick<Io, 'home' | 'env' | 'cwd' | 'signal'>
  cwd: string
  services: ChatServices
  store: SessionStore
}

/** Asks whether to trust a repository, before anything of it applies. Closing the question means no. */
export async function trustOnScreen(trust: ProjectTrust, { ui, io }: Pick<FirstRun, 'ui' | 'io'>): Promise<void> {
  if (!needsTrust(trust)) return
  const { project } = trust
  const changes = trust.state === 'changed' ? trust.changes : []
  const answer = await ui.ask({
    title: changes.length > 0 ? 'This repository has changed since you trusted it' : 'Do you trust this repository?',
    intro: [
      harmlessLine(project.root),
      ...changes.map(({ change, what, name }) => `  ${change} ${what} ${harmlessLine(name)}`),
      changes.length > 0 ? 'Everything it would do now:' : 'It has settings of its own:',
      ...project.summary.flatMap((line) => harmless(line).split('\n')).map((line) => `  ${line}`),
      '',
    ],
    choices: [
      { value: 'no', label: 'No', detail: 'work without its settings' },
      { value: 'yes', label: 'Yes, trust it as it is now' },
    ],
  })
  if (answer === 'yes') await grantTrust(project, new TrustStore(configFolder(io)))
  else ui.say(`Ignoring the project settings of ${harmlessLine(project.root)}, because the folder is not trusted.`)
}

export function needsTrust({ state, project }: ProjectTrust): boolean {
  return (state === 'untrusted' && project.isComplete) || state === 'changed'
}

/** `chat`: there is a usable model now. */
export type WayOnScreen = 'chat' | 'tour' | 'leave'

/** Leads a user without a usable model to one: by a key, or by a server on this machine. */
export async function modelOnScreen(problem: string, run: FirstRun): Promise<WayOnScreen> {
  const { ui, io, cwd } = run
  const found = (await (await surroundingsOf(io, { cwd })).registry.discover()).flatMap(({ id, name, models }) =>
    models.map((model) => ({ reference: `${id}/${model.id}`, server: name })),
  )
  let history = await foundHistory(io)
  for (;;) {
    const way = await ui.ask({
      title: 'Welcome to tapetree',
      intro: [harmlessLine(problem), ''],
      choices: [
        { value: 'key', label: 'Paste a key', detail: 'of Anthropic, OpenAI, Google or another provider' },
        ...(found.length > 0
          ? [{ value: 'local', label: 'Use a model on this machine', detail: counted(found.length, 'model') }]
          : []),
        ...(history.length > 0
          ? [
              {
                value: 'history',
                label: 'Bring your history',
                detail: `${counted(history.length, 'session')} of ${programsOf(history)}`,
              },
            ]
          : []),
        { value: 'tour', label: 'Take a tour of 60 seconds', detail: 'without a key and without network' },
        { value: 'leave', label: 'Quit' },
      ],
    })
    if (way === 'tour') return way
    if (way === undefined || way === 'leave') return 'leave'
    if (way === 'history') {
      await bringHistory(history, run)
      history = []
      continue
    }
    const isReady = way === 'key' ? await modelByKey(run) : await localModel(found, run)
    if (isReady) return 'chat'
  }
}

/** What other programs have on this machine. The screen waits for it only briefly. */
async function foundHistory(io: FirstRun['io']): Promise<readonly FoundSession[]> {
  try {
    const { findSessions } = await import('../../import/find-sessions.ts')
    const signal = AbortSignal.any([io.signal, AbortSignal.timeout(longestSearchMs)])
    return (await findSessions({ machine: io, signal })).sessions
  } catch {
    return [] // `tapetree import` says what is wrong
  }
}

const longestSearchMs = 2000

function programsOf(history: readonly FoundSession[]): string {
  return [...new Set(history.map(({ source }) => sourceTitles[source]))].join(', ')
}

async function bringHistory(history: readonly FoundSession[], { ui, io, store }: FirstRun): Promise<void> {
  const { importAll } = await import('../sessions/import-history.ts')
  const { databaseCopies } = await import('../../import/opencode-rows.ts')
  await using _copies = databaseCopies
  ui.say(`Importing ${counted(history.length, 'session')}.`)
  const imported = await importAll(store, { sessions: [...history] }, { io })
  const failed = imported.filter(({ failure }) => failure !== undefined).length
  const said = `Imported ${counted(imported.length - failed, 'session')}. /sessions lists them.`
  ui.say(failed === 0 ? said : `${said} ${failed} could not be imported; \`tapetree import --all\` says why.`)
}

async function modelByKey(run: FirstRun): Promise<boolean> {
  const { ui, services, io, cwd } = run
  const provider = await enterKey({ ...ui, services, providers: await services.providers() })
  return provider !== undefined && chooseModel(provider, await surroundingsOf(io, { cwd }), run)
}

/** The model that the provider recommends comes first, so that Enter takes it. */
async function chooseModel({ id }: KeyProvider, around: Surroundings, { ui, services }: FirstRun): Promise<boolean> {
  const { registry } = around
  const order = (await registryModels({ registry }).choices()).filter(({ provider }) => provider === id)
  const listed = await registry.list()
  const models = order.flatMap(
    ({ modelId }) => listed.find((each) => each.provider === id && each.id === modelId) ?? [],
  )
  const chosen = await ui.ask({
    title: 'Model',
    intro: ['Prices are US dollars for a million tokens of input and output. /model changes it later.', ''],
    choices: models.map((model) => ({ value: model, label: harmlessLine(model.id), detail: priceText(model.prices) })),
  })
  if (!chosen) return false
  await services.remember({ model: `${chosen.provider}/${chosen.id}` }, 'everywhere')
  return true
}

function priceText(prices: { input: number; output: number } | undefined): string {
  return prices ? `$${prices.input} and $${prices.output}` : 'the price is not known'
}

async function localModel(
  found: readonly { reference: string; server: string }[],
  { ui, services }: FirstRun,
): Promise<boolean> {
  const chosen = await ui.ask({
    title: 'Model on this machine',
    intro: [],
    choices: found.map((model) => ({ value: model, label: harmlessLine(model.reference), detail: model.server })),
  })
  if (!chosen) return false
  await services.remember({ model: chosen.reference }, 'everywhere')
  return true
}

/** A first message that makes sense in this folder. */
export async function firstSuggestion(cwd: string): Promise<string> {
  const names = (await readdir(cwd).catch(() => [])).filter((name) => !name.startsWith('.'))
  if (names.length === 0) return 'This folder is empty. Ask me what I want to build, and set it up.'
  const readme = names.find((name) => /^readme(?:\.|$)/i.test(name))
  const start = readme === undefined ? 'Look at this folder' : `Read ${harmlessLine(readme)}`
  return `${start} and explain in a few sentences what is here, how it is laid out and how its tests are run.`
}
