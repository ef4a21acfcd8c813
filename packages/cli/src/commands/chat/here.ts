import type { ModelReference } from '@tapetree/session'
import { textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { localSource, offeredModels } from '../../host/local-source.ts'
import { openStore } from '../../host/open-store.ts'
import { traceUrlOf } from '../../host/otlp.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import { write, askLine, stylesFor, type Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import type { ChatEnd, ChatLook, ChatOptions, Notice, SetupUi } from '../../tui/chat-options.ts'
import type { ChatServices } from '../../tui/chat-services.ts'
import { firstSuggestion, modelOnScreen, needsTrust, trustOnScreen, type WayOnScreen } from './first-run.ts'
import { lookIn, rememberStart } from './start-mark.ts'
import {
  choiceOf,
  flagsOf,
  openChatHost,
  closeChat,
  openWanted,
  sayGoodbye,
  sessionWanted,
  type WantedSession,
} from './session.ts'
import { ChatProblems } from './problems.ts'
import { lookOf, showChat } from './screen.ts'
import { registryModels, RegistryError } from '@tapetree/agent/models'
import {
  configFolder,
  findProjectRoot,
  inspectProject,
  settleTrust,
  TrustStore,
  type LoadedSettings,
  type ProjectTrust,
} from '@tapetree/agent/settings'
import { harmlessLine, harmless } from '../../text/harmless.ts'
import type { OpenedSession } from '../../session-source.ts'

/** The chat in this folder, or in the folder of the session it continues. Asks its questions before it draws the screen. */
export async function chatHere(invocation: Invocation, io: Io): Promise<ExitCode> {
  const store = await openStore(placesOf(io))
  try {
    const wanted = await sessionWanted(invocation, { store, cwd: io.cwd })
    return await chatWith(wanted, { store, invocation, io, prompt: invocation.positionals.join(' ') })
  } finally {
    await store.close()
  }
}

interface ChatParts {
  store: Awaited<ReturnType<typeof openStore>>
  invocation: Invocation
  io: Io
  /** If empty, no prompt is sent. */
  prompt: string
}

/** Also for `attach`, which only names a session. */
export async function chatWith(wanted: WantedSession, { store, invocation, io, prompt }: ChatParts): Promise<ExitCode> {
  const cwd = ('session' in wanted ? wanted.session.cwd : undefined) ?? io.cwd
  const flags = flagsOf(invocation)
  const asked = await questionsOnScreen(wanted, { cwd, invocation, io })
  if (asked) return chatAfterQuestions(wanted, { ...asked, store, invocation, io, prompt, cwd })
  const trust = await askTrust(cwd, io)
  const around = await surroundingsOf(io, { cwd, trust, flags })
  let typed = textOption(invocation, 'model')
  if (wanted.type === 'new' && typed === undefined) {
    const way = await offerWaysIn(around, invocation, io)
    if (way.type === 'leave') return way.code
    typed = way.model
  }
  const model = typed === undefined ? undefined : await findModel(around, typed)
  const problems = new ChatProblems()
  const host = await openChatHost({ io, store, flags, traceUrl: traceUrlOf(invocation), problems })
  const source = localSource({ host, store, cwd, model, models: () => offeredModels(around.registry) })
  let end: ChatEnd | undefined
  try {
    const first = await openWanted(wanted, source)
    if (first && first.access.type !== 'read-only' && wanted.type !== 'new') {
      await first.handle.set({ ...choiceOf(flags), ...(model && { model }) })
    }
    const { settings } = around
    const soFar = problems.take()
    const isAsWritten = model === undefined && soFar.length === 0
    if (wanted.type === 'new' && isAsWritten) await rememberStart(io, { settings, trust })
    const look = lookOf(invocation, lookIn(settings), io)
    const notices = noticesOf({ first, settings, trust, problems: soFar })
    const remarks: ChatOptions['remarks'] = (tell) => problems.listen(tell)
    const services = async (): Promise<ChatServices> =>
      (await import('./services.ts')).chatServices({ io, store, host, source })
    end = await showChat({ io, cwd, source, first, services, look, notices, remarks, prompt, host })
  } finally {
    const discarded = await closeChat(source, { host, store })
    await sayGoodbye(end?.sessionId, { discarded, folder: source.folder }, io)
  }
  return exitCodes.ok
}

interface Asked {
  trust: ProjectTrust
  settings: LoadedSettings
  look: ChatLook
}

/** Set if there are questions that the chat asks on its screen. A screen reader hears them line by line, before the chat. */
async function questionsOnScreen(
  wanted: WantedSession,
  { cwd, invocation, io }: { cwd: string; invocation: Invocation; io: Io },
): Promise<Asked | undefined> {
  if (wanted.type === 'pick' || textOption(invocation, 'model') !== undefined) return undefined
  const around = await surroundingsOf(io, { cwd, flags: flagsOf(invocation) })
  const { trust, settings } = around
  const look = lookOf(invocation, lookIn(settings), io)
  if (look.screenReader) return undefined
  const isOpen = needsTrust(trust) || (wanted.type === 'new' && (await whyNoModel(around)) !== undefined)
  return isOpen ? { trust, settings, look } : undefined
}

/** Draws the screen first, and asks there. */
async function chatAfterQuestions(
  wanted: WantedSession,
  { trust, settings, look, store, invocation, io, prompt, cwd }: ChatParts & Asked & { cwd: string },
): Promise<ExitCode> {
  const flags = flagsOf(invocation)
  const problems = new ChatProblems()
  const host = await openChatHost({ io, store, flags, traceUrl: traceUrlOf(invocation), problems })
  const around = (): Promise<Surroundings> => surroundingsOf(io, { cwd, flags })
  const source = localSource({
    ...{ host, store, cwd },
    models: async () => offeredModels((await around()).registry),
  })
  const { chatServices } = await import('./services.ts')
  const services = chatServices({ io, store, host, source })
  let way: WayOnScreen = 'chat'
  const first = async (ui: SetupUi): Promise<OpenedSession | undefined> => {
    const run = { ui, io, cwd, services, store }
    await trustOnScreen(trust, run)
    const problem = wanted.type === 'new' ? await whyNoModel(await around()) : undefined
    if (problem !== undefined) way = await modelOnScreen(problem, run)
    if (way !== 'chat') return undefined
    const opened = await openWanted(wanted, source)
    if (opened && opened.access.type !== 'read-only' && wanted.type !== 'new') await opened.handle.set(choiceOf(flags))
    if (problem !== undefined && prompt === '') ui.suggest(await firstSuggestion(cwd))
    return opened
  }
  let end: ChatEnd | undefined
  try {
    const notices = noticesOf({ first: undefined, settings, problems: problems.take() })
    const remarks: ChatOptions['remarks'] = (tell) => problems.listen(tell)
    const shown = { source, first, services: async () => services, look, notices, remarks, prompt, host }
    end = await showChat({ io, cwd, ...shown })
  } finally {
    const discarded = await closeChat(source, { host, store })
    await sayGoodbye(end?.sessionId, { discarded, folder: source.folder }, io)
  }
  return afterScreen(way, invocation, io)
}

async function afterScreen(way: WayOnScreen, invocation: Invocation, io: Io): Promise<ExitCode> {
  if (way !== 'tour') return way === 'leave' ? exitCodes.noModel : exitCodes.ok
  const { tour } = await import('../setup/tour.ts')
  return tour({ ...invocation, values: {}, positionals: [] }, io)
}

async function findModel({ registry }: Surroundings, typed: string): Promise<ModelReference> {
  const { provider, id } = await registry.find(typed)
  return { provider, modelId: id }
}

interface Noticed {
  first: OpenedSession | undefined
  settings: LoadedSettings
  trust?: ProjectTrust
  /** Problems so far, a sentence each. */
  problems?: readonly string[]
}

/** Notices above the conversation, each once. The owner of the session may change while the chat runs. */
export function noticesOf({ first, settings, trust, problems = [] }: Noticed): Notice[] {
  const lasting = [...settings.problems.map(({ message }) => message), ...problems]
  if (trust?.state === 'untrusted' || trust?.state === 'changed') {
    lasting.push(`Ignoring the project settings of ${trust.project.root}, because the folder is not trusted.`)
  }
  const notices: Notice[] = [...new Set(lasting.map(harmlessLine))].map((text) => ({ text }))
  const owner = first && ownerNotice(first)
  const { access } = first ?? {}
  if (owner !== undefined) notices.push({ text: harmlessLine(owner), while: () => first?.access === access })
  return notices
}

function ownerNotice({ access, handle }: OpenedSession): string | undefined {
  if (access.type === 'attached') return `The session runs in ${access.where}; this is one of its screens.`
  if (access.type !== 'read-only') return undefined
  const isOwned = handle.state('read_only')?.owner !== undefined
  return isOwned ? `${access.reason} You can watch it here. You can write when that process closes it.` : access.reason
}

/** Asks whether to trust a repository with settings that take effect, before any of them apply. No answer means no. */
export async function askTrust(cwd: string, io: Io): Promise<ProjectTrust> {
  const project = await inspectProject(await findProjectRoot(cwd), cwd)
  return settleTrust(project, new TrustStore(configFolder(io)), async (trust) => {
    await write(io.stderr, `${summaryOf(trust, io)}\n`)
    const answer = await askLine(io, 'Trust it? [y/N] ')
    return /^(?:y|yes)$/i.test(answer)
  })
}

/** When a trusted repository changes, shows the changes and everything it would do now; new text is shown in full. */
function summaryOf(trust: ProjectTrust, { stderr, env }: Pick<Io, 'stderr' | 'env'>): string {
  const { bold, yellow } = stylesFor(stderr, env)
  const { project } = trust
  const root = harmlessLine(project.root)
  const all = project.summary.map((line) => `  ${harmless(line)}`)
  if (trust.state !== 'changed') {
    return [`${bold(root)} has project settings that you have not trusted yet:`, ...all].join('\n')
  }
  const changes = trust.changes.map(({ change, what, name }) => `  ${yellow(change)} ${what} ${harmlessLine(name)}`)
  return [
    `${bold(root)} has changed since you trusted it:`,
    ...changes,
    ...(all.length > 0 ? ['Everything it would do now:', ...all] : []),
  ].join('\n')
}

/** How a user without a key continues. */
type WayIn =
  /** `model`: a local model, just chosen. */
  { type: 'chat'; model?: string } | { type: 'leave'; code: ExitCode }

const maxOffered = 20

/** Asks only if no model is usable, instead of failing because of a missing key. */
export async function offerWaysIn(around: Surroundings, invocation: Invocation, io: Io): Promise<WayIn> {
  const problem = await whyNoModel(around)
  if (problem === undefined) return { type: 'chat' }
  const local = await localModels(around)
  await write(io.stderr, menu(problem, local, io))
  switch (await askLine(io, 'Which one? [1-3, Enter to quit] ')) {
    case '1': {
      const { tour } = await import('../setup/tour.ts')
      return { type: 'leave', code: await tour({ ...invocation, values: {}, positionals: [] }, io) }
    }
    case '2':
      return local.length > 0 ? chooseLocal(local, io) : sayHowToServe(io)
    case '3':
      await write(io.stderr, whereToPutKeys(around))
      return { type: 'leave', code: exitCodes.noModel }
    default:
      return { type: 'leave', code: exitCodes.noModel }
  }
}

/** Undefined if the model of a new session can be opened. */
async function whyNoModel({ settings, registry }: Surroundings): Promise<string | undefined> {
  const { model, modelCycle: cycle, extensions } = settings.values
  // Extensions may add models, but are not started for this.
  if (extensions.length > 0) return undefined
  try {
    if (model === undefined) await registryModels({ registry, cycle }).choices()
    else {
      const { key, provider, id } = await registry.find(model)
      if (key.type === 'missing') return `There is no key for ${provider}/${id} (${key.variable} is not set).`
    }
    return undefined
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    return error.message
  }
}

async function localModels({ registry }: Surroundings): Promise<string[]> {
  const servers = await registry.discover()
  return servers.flatMap(({ id, models }) => models.map((model) => `${id}/${model.id}`)).slice(0, maxOffered)
}

function menu(problem: string, local: readonly string[], { stderr, env }: Pick<Io, 'stderr' | 'env'>): string {
  const { bold, dim } = stylesFor(stderr, env)
  const found = local.length > 0 ? local.slice(0, 3).map(harmlessLine).join(', ') : 'none found on this machine'
  return [
    harmlessLine(problem),
    '',
    `  ${bold('1')}  take a 60-second tour ${dim('(no key, no network: real tools in a temporary folder)')}`,
    `  ${bold('2')}  use a model on this machine ${dim(`(${found})`)}`,
    `  ${bold('3')}  show how to add a key`,
    '',
  ].join('\n')
}

async function chooseLocal(local: readonly string[], io: Io): Promise<WayIn> {
  const [only] = local
  if (local.length === 1 && only !== undefined) return { type: 'chat', model: only }
  await write(io.stderr, local.map((model, index) => `  ${index + 1}  ${harmlessLine(model)}\n`).join(''))
  const chosen = local[Number(await askLine(io, `Which one? [1-${local.length}] `)) - 1]
  return chosen === undefined ? { type: 'leave', code: exitCodes.noModel } : { type: 'chat', model: chosen }
}

async function sayHowToServe(io: Io): Promise<WayIn> {
  await write(
    io.stderr,
    'No model server answers on this machine. Start Ollama (port 11434), LM Studio (port 1234) or llama.cpp (port ' +
      '8080), or name\n' +
      'any other Chat Completions server: tapetree --model http://127.0.0.1:8000/v1#<model>\n',
  )
  return { type: 'leave', code: exitCodes.noModel }
}

function whereToPutKeys({ registry }: Surroundings): string {
  const lines = registry.providers
    .filter(({ keyVariables }) => keyVariables.length > 0)
    .map(({ id, keyVariables }) => `  ${`tapetree login ${id}`.padEnd(26)}  or set ${keyVariables[0]}\n`)
  return `Keys are stored in the system keyring, or in a file that only you can read:\n${lines.join('')}`
}
