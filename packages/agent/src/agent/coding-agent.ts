import type { ModelReference, SessionStore } from '@tapetree/session'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { ExtensionHost, type ExtensionSource } from '../extensions/extension-host.ts'
import type { TrustedModules } from '../extensions/trusted-modules.ts'
import type { McpServerState } from '../mcp/mcp-server.ts'
import { McpServers } from '../mcp/mcp-servers.ts'
import { describeChange } from '../mcp/pinned-tools.ts'
import type { SignInOptions } from '../mcp/sign-in.ts'
import { createRedactor, secretsOf, type Redactor } from '@tapetree/redact'
import {
  createModelRegistry,
  splitUrl,
  type ModelRegistry,
  type ModelRegistryOptions,
} from '../models/registry/model-registry.ts'
import type { Model } from '../models/model.ts'
import { isUrl, RegistryError } from '../models/registry/model-info.ts'
import type { Rule } from '../permissions/rules.ts'
import { loadResources, type Resources } from '../resources/load-resources.ts'
import type { TrustedContent } from '../resources/resource-files.ts'
import type { Settings } from '../settings/built-in.ts'
import { allowInProject } from '../settings/change-settings.ts'
import { configFolder } from '../settings/config-files.ts'
import { Credentials, type Keyring } from '../settings/credentials.ts'
import {
  changedProgram,
  inspectProject,
  projectExtensions,
  type Project,
  type ProjectCommand,
} from '../settings/inspect-project.ts'
import { loadSettings, type LoadedSettings } from '../settings/layers.ts'
import { PinFile } from '../settings/pin-file.ts'
import { findProjectRoot } from '../settings/project.ts'
import type { SettingsInput } from '../settings/schema.ts'
import { settleTrust, type ProjectTrust } from '../settings/trust.ts'
import { TrustStore } from '../settings/trust-store.ts'
import { diagnosticsTool } from '../language-servers/diagnostics-tool.ts'
import { EditDiagnostics } from '../language-servers/edit-diagnostics.ts'
import type { LanguageServerState } from '../language-servers/language-server.ts'
import { LanguageServers } from '../language-servers/language-servers.ts'
import { allTools } from '../tools/builtin/all-tools.ts'
import type { Tool } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import { expandPrompt, type Expansion } from '../prompt/expand.ts'
import { watchEnvironment } from '../prompt/environment-facts.ts'
import type { SandboxPlace } from '../sandbox/sandbox.ts'
import type { RemoteWorkspace } from '../tool-host/remote-workspace.ts'
import { requireSandbox, sandboxesOf } from './program-sandbox.ts'
import { onlyModel, registryModels, type ModelSource } from './model-choice.ts'
import { taskToolName } from './subagents.ts'
import { messageOf } from '../util/message-of.ts'
import { buildSystemPrompt } from '../prompt/system-prompt.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import type { ForeignAgent } from '../run/foreign-agent.ts'
import type { RunSettings } from '../run/run-settings.ts'
import type { BoxProgram } from '../tools/commands/program-box.ts'

export interface CodingAgentOptions {
  store: SessionStore
  /** The session to open. Default: a new session. */
  sessionId?: string
  /** Absolute. */
  cwd: string
  /** A working copy of `cwd`, in which the agent works. Settings, instructions and programs are still those of `cwd`. */
  workingFolder?: string
  /** Its tools work in a folder of another machine. Settings and programs are those of the user here; nothing is taken from the project in `cwd`. */
  remote?: RemoteWorkspace
  home?: string
  env?: Readonly<Record<string, string | undefined>>
  /** Settings from the command line. */
  flags?: SettingsInput
  /** Replaces our system prompt. Instructions, skills and appended settings still follow it. */
  systemPrompt?: string
  /** Added to the built-in tools and those of MCP servers and extensions. */
  tools?: readonly Tool[]
  /** Loaded before those of the settings. The caller trusts them. */
  extensions?: readonly ExtensionSource[]
  /** Permission rules of the host, in addition to those of the user's settings. */
  rules?: readonly Rule[]
  /** Models of the host: one, or a source of several. The first is the default, unless `flags` name another. */
  models?: Model | ModelSource
  /** Works instead of a model. */
  foreign?: (place: ForeignPlace) => ForeignAgent
  /** Only these tools, from any source; a name may end with `*`. Default: all. */
  toolNames?: readonly string[]
  /** Asks the user whether to trust a repository. Without it, no repository becomes trusted. */
  askTrust?: (trust: ProjectTrust) => Promise<boolean>
  keyring?: Keyring
  signIn?: Pick<SignInOptions, 'store' | 'openUrl'>
  whenUnanswered?: 'wait' | 'deny'
  /** The host of the session, such as `server` or `terminal`. */
  owner?: string
  clock?: Clock
  /** Lets commands run in a sandbox, and makes `sandboxed` the default mode. Absent: the default is `ask`, and `sandboxed` is like it. */
  sandbox?: SandboxPlace
  /** Keeps the file snapshots of all folders, unless the settings turn them off. Absent: none are made. */
  snapshotsFolder?: string
  fetch?: typeof globalThis.fetch
  /** Reports problems outside the conversation, a sentence each. */
  onProblem?: (problem: AgentProblem) => void
}

/** Where a foreign agent works. */
export interface ForeignPlace {
  settings: Settings
  /** Absolute. */
  cwd: string
  /** Puts its program into the sandbox. */
  box?: BoxProgram
}

export interface AgentProblem {
  source: string
  /** A sentence. */
  message: string
  /** The MCP server whose change the user must accept before its tools can be used. */
  changedServer?: string
}

/** The language servers of a project. */
export interface ProjectLanguageServers {
  /** Of the servers that were started. */
  readonly states: readonly LanguageServerState[]
  /** Calls the listener after each change of `states`. */
  subscribe(listener: () => void): () => void
}

/** A session with everything that settings, project and extensions add to it. */
export interface CodingAgent extends AsyncDisposable {
  readonly session: AgentSession
  readonly settings: LoadedSettings
  readonly trust: ProjectTrust
  readonly registry: ModelRegistry
  readonly resources: Resources
  readonly extensions: ExtensionHost
  readonly mcp: McpServers
  /** Absent: none may be started. */
  readonly languageServers?: ProjectLanguageServers
  close(): Promise<void>
}

/** Assembles a coding agent. Reads no configuration of a repository, and runs nothing of it, before it is trusted. */
export async function openCodingAgent(options: CodingAgentOptions): Promise<CodingAgent> {
  const { cwd, home = homedir(), env = process.env, clock = systemClock, onProblem = () => undefined } = options
  const { workingFolder = cwd, remote } = options
  const folder = configFolder({ home, env })
  const project = await inspectProject(await findProjectRoot(cwd), cwd)
  const trust = remote ? elsewhere(project) : await settleTrust(project, new TrustStore(folder), options.askTrust)
  const settings = await loadSettings({ cwd, home, env, trust, ...(options.flags && { flags: options.flags }) })
  for (const { message } of settings.problems) onProblem({ source: 'settings', message })
  const { values } = settings
  if (!options.sandbox && !remote && hasBuiltInMode(settings)) values.permissions.mode = 'ask'
  const onMissing = (message: string): void => onProblem({ source: 'sandbox', message })
  const places = { home, env, workingFolder, projectRoot: project.root }
  const sandboxes = options.sandbox && sandboxesOf(options.sandbox, { ...places, settings, onMissing })
  await requireIfSet(settings, remote, sandboxes)
  const inSandbox = sandboxes && { box: sandboxes.box }

  const trusted = trust.state === 'trusted' ? trustedParts(trust.project) : undefined
  // Programs start from the disk, so `mayStart` compares them with the trusted version before each start.
  const extensions = await ExtensionHost.open({
    extensions: [...(options.extensions ?? []), ...values.extensions.map((path) => trusted?.extension(path) ?? path)],
    commandHooks: values.hooks,
    ...(trusted && { mayStart: trusted.mayStartHook }),
    ...inSandbox,
    cwd,
    clock,
    onProblem: ({ extension, message }) => onProblem({ source: extension, message }),
  })
  const mcp = McpServers.start({
    ...{ servers: values.mcpServers, cwd, environment: env, pins: new PinFile(folder), clock },
    ...(trusted && { mayStart: trusted.mayStartServer }),
    ...inSandbox,
    ...(options.signIn && { signIn: options.signIn }),
    observe: (event) => reportServer(event, onProblem),
  })
  // They run code of the project, so nothing but trust starts one.
  const mayCheck = trust.state === 'trusted' && values.languageServers.isEnabled && workingFolder === cwd
  const ofProject = { workspace: project.root, environment: env, clock, ...inSandbox }
  const { languageServers, diagnostics } = mayCheck ? checksOf(ofProject, { cwd, clock }) : {}
  const closeServers = async (): Promise<void> => {
    await Promise.all([mcp.close(), extensions.close(), languageServers?.release()])
  }
  try {
    const resources = await loadResources({
      ...{ cwd, home, configFolder: folder, ...resourcesOf(project, trust) },
      extraSkillFolders: [...values.skillFolders, ...extensions.skillFolders],
      extraTemplateFolders: [...values.promptFolders, ...extensions.templateFolders],
    })
    for (const message of resources.problems) onProblem({ source: 'resources', message })
    const registry = registryOf({ ...options, env, clock }, { ...extensions.providers, ...values.providers }, folder)
    const prefixProblem = await trusted?.mayUsePrefix(values.shellPrefix)
    if (prefixProblem !== undefined) onProblem({ source: 'settings', message: prefixProblem })
    const allowedHere = settings.values.projects[project.root]?.allow ?? []
    const { model, ...fromSettings } = optionsFrom(settings, home, [...(options.rules ?? []), ...allowedHere])
    const foreign = options.foreign?.({ settings: values, cwd: workingFolder, ...inSandbox })
    const session = await AgentSession.open({
      ...fromSettings,
      ...(foreign && { foreign }),
      ...(model && (!options.models || options.flags?.model !== undefined) && { model }),
      ...(prefixProblem !== undefined && { shellPrefix: '' }),
      store: options.store,
      ...(options.sessionId !== undefined && { sessionId: options.sessionId }),
      cwd: remote?.reference.folder ?? workingFolder,
      ...(remote && { remote }),
      clock,
      models: withOwnModels(options.models, registryModels({ registry, extensions, cycle: values.modelCycle })),
      ...(sandboxes && { sandbox: sandboxes.commands }),
      tools: toolsOf(options, { extensions, mcp, web: values.web, diagnostics }),
      ...(diagnostics && { diagnostics }),
      hasSubagents: isChosen(taskToolName, options.toolNames),
      systemPrompt: () => systemPromptOf({ cwd: workingFolder, remote, resources, values, base: options.systemPrompt }),
      expand: (typed) => expand(typed, { resources, extensions }),
      hooks: extensions.hooks,
      // Without anything to trust, the user has not granted trust either: git does not run.
      environmentChanges: watchEnvironment({
        ...{ cwd: workingFolder, clock, environment: env, ...inSandbox },
        ...(remote && { isElsewhere: true }),
        ...(trust.state === 'trusted' && workingFolder === cwd && { trustedRoot: project.root }),
      }),
      redactor: redactorOf(values, { registry, env }),
      ...(options.whenUnanswered && { whenUnanswered: options.whenUnanswered }),
      ...(!remote && { keepRules: rulesKeeper(project.root, { home, env }, onProblem) }),
      ...(options.owner !== undefined && { owner: options.owner }),
      ...(options.snapshotsFolder !== undefined &&
        values.snapshots.isEnabled && { snapshotsFolder: options.snapshotsFolder }),
    })
    await reportSession(session, onProblem)
    const close = async (): Promise<void> => {
      await session.close()
      await closeServers()
    }
    return {
      ...{ session, settings, trust, registry, resources, extensions, mcp },
      ...(languageServers && { languageServers }),
      ...{ close, [Symbol.asyncDispose]: close },
    }
  } catch (error) {
    await closeServers()
    throw error
  }
}

/** The language servers of a project, and what they tell the model of its edits. */
function checksOf(
  options: Parameters<typeof LanguageServers.share>[0],
  { cwd, clock }: { cwd: string; clock: Clock },
): { languageServers?: LanguageServers; diagnostics?: EditDiagnostics } {
  const languageServers = LanguageServers.share(options)
  return { languageServers, diagnostics: new EditDiagnostics(languageServers, { cwd, clock }) }
}

/** What `loadResources` may take from a project. */
function resourcesOf(project: Project, { state }: ProjectTrust) {
  return {
    repositoryRoot: project.root,
    // Without anything to trust, instructions are only text.
    isTrusted: state === 'trusted' || state === 'nothing-to-trust',
    content: contentOf(project),
  }
}

/** Rejects if the settings require a sandbox and there is none where commands run. */
async function requireIfSet(
  { values }: LoadedSettings,
  remote: RemoteWorkspace | undefined,
  sandboxes: ReturnType<typeof sandboxesOf> | undefined,
): Promise<void> {
  const { isRequired, limits } = values.sandbox
  if (!isRequired || (await remote?.sandbox.isUsable())) return
  requireSandbox(remote ? undefined : (await sandboxes?.commands())?.support, limits)
}

/** Nothing is taken from the project here. */
function elsewhere(project: Project): ProjectTrust {
  return { state: 'untrusted', project, reason: 'The tools of this session work in another project.' }
}

function rulesKeeper(
  root: string,
  place: Parameters<typeof allowInProject>[1],
  onProblem: NonNullable<CodingAgentOptions['onProblem']>,
): NonNullable<AgentSessionOptions['keepRules']> {
  return (rules) =>
    allowInProject({ root, rules }, place).catch((error: unknown) =>
      onProblem({ source: 'settings', message: messageOf(error) }),
    )
}

function hasBuiltInMode({ origins }: LoadedSettings): boolean {
  return (origins.get('permissions.mode')?.layer ?? 'built-in') === 'built-in'
}

function toolsOf(
  { tools = [], toolNames }: CodingAgentOptions,
  {
    extensions,
    mcp,
    web,
    diagnostics,
  }: {
    extensions: ExtensionHost
    mcp: McpServers
    web: { allowPrivateAddresses: boolean }
    diagnostics: EditDiagnostics | undefined
  },
): NonNullable<AgentSessionOptions['tools']> {
  return ({ jobs, redaction, sandbox }) => {
    const own = allTools({ jobs, redaction, ...web, ...(sandbox && { bash: { sandbox } }) })
    const checks = diagnostics ? [diagnosticsTool(diagnostics)] : []
    return extensions
      .withTools([...own, ...checks, ...mcp.tools(), ...tools])
      .filter(({ name }) => isChosen(name, toolNames))
  }
}

interface TrustedParts {
  /** The trusted version of an extension of the project; undefined for an extension from elsewhere. */
  extension: (path: string) => { path: string; modules: TrustedModules } | undefined
  mayStartHook: (command: string) => Promise<string | undefined>
  mayStartServer: (server: string) => Promise<string | undefined>
  mayUsePrefix: (prefix: string | undefined) => Promise<string | undefined>
}

/** What a trusted project contributes, bound to the version that the user trusted. */
function trustedParts(project: Project): TrustedParts {
  const { root, packages, commands } = project
  const files = new Map([...project.files, ...project.modules].map(({ realPath, bytes }) => [realPath, bytes]))
  const paths = new Set(projectExtensions(project))
  const mayStart = async (isMeant: (command: ProjectCommand) => boolean): Promise<string | undefined> => {
    for (const command of commands.filter(isMeant)) {
      const problem = await changedProgram(command, project)
      if (problem !== undefined) return problem
    }
    return undefined
  }
  return {
    extension: (path) => (paths.has(path) ? { path, modules: { root, files, packages } } : undefined),
    mayStartHook: (started) => mayStart(({ name, command }) => name.startsWith('hook ') && command === started),
    mayStartServer: (server) => mayStart(({ name }) => name === `MCP server ${server}`),
    mayUsePrefix: (prefix) => mayStart(({ name, text }) => name === 'shell prefix' && text === prefix),
  }
}

/** The configuration of a project as it was read for the trust prompt. */
function contentOf({ root, files }: Project): TrustedContent {
  return new Map(files.map(({ path, bytes, realPath }) => [join(root, path), { bytes, realPath }]))
}

function registryOf(
  {
    env,
    clock,
    keyring,
    fetch,
  }: Pick<CodingAgentOptions, 'keyring' | 'fetch'> & Required<Pick<CodingAgentOptions, 'env' | 'clock'>>,
  providers: NonNullable<ModelRegistryOptions['providers']>,
  folder: string,
): ModelRegistry {
  const credentials = new Credentials({ env, configFolder: folder, ...(keyring && { keyring }) })
  return createModelRegistry({ providers, credentials, env, clock, ...(fetch && { fetch }) })
}

/** Hides what looks like a secret in the environment, and the keys of the providers, whatever the names of their variables. */
function redactorOf(
  { redaction }: LoadedSettings['values'],
  { registry, env }: { registry: ModelRegistry; env: NonNullable<CodingAgentOptions['env']> },
): Redactor {
  const names = registry.providers.flatMap(({ keyVariables }) => keyVariables)
  const keys = names.flatMap((name) => Object.values(secretsOf({ KEY: env[name] })).map((key) => [name, key] as const))
  return createRedactor({ secrets: { ...secretsOf(env), ...Object.fromEntries(keys) }, allow: redaction.allow })
}

function reportServer(
  { server, state }: { server: string; state: McpServerState },
  onProblem: NonNullable<CodingAgentOptions['onProblem']>,
): void {
  const source = `MCP server ${server}`
  if (state.type === 'failed') onProblem({ source, message: state.reason })
  if (state.type === 'changed') onProblem({ source, message: describeChange(state.change), changedServer: server })
}

/** What the user should know about a session before its first prompt. */
async function reportSession(
  session: AgentSession,
  onProblem: NonNullable<CodingAgentOptions['onProblem']>,
): Promise<void> {
  const sandboxProblem = await session.sandboxProblem()
  if (sandboxProblem !== undefined) onProblem({ source: 'sandbox', message: sandboxProblem })
  const modelProblem = missingModelOf(session)
  if (modelProblem !== undefined) onProblem({ source: 'model', message: modelProblem })
}

function missingModelOf(session: AgentSession): string | undefined {
  const { missingModel: missing, model } = session.state()
  if (!missing) return undefined
  return (
    `This session used ${missing.provider}/${missing.modelId}, which cannot be opened: ${missing.reason} ` +
    `It continues with ${model.provider}/${model.modelId}.`
  )
}

function isChosen(tool: string, names: readonly string[] | undefined): boolean {
  const fits = (name: string): boolean => (name.endsWith('*') ? tool.startsWith(name.slice(0, -1)) : tool === name)
  return names === undefined || names.some(fits)
}

interface PromptInput {
  cwd: string
  remote: RemoteWorkspace | undefined
  resources: Resources
  values: Settings
  base: string | undefined
}

function systemPromptOf({ cwd, remote, resources, values, base }: PromptInput): string {
  const { platform, folder } = remote?.reference ?? { platform: process.platform, folder: cwd }
  const there = remote?.instructions.map((each) => ({ ...each, source: 'project' as const })) ?? []
  return buildSystemPrompt({
    ...(base !== undefined && { base }),
    environment: { platform, cwd: folder, shell: 'bash' },
    instructions: [...resources.instructions, ...there],
    skills: resources.skills,
    appended: values.systemPrompt.append,
  })
}

/** Commands of extensions come first: they are code, and they interpret their arguments themselves. */
async function expand(
  typed: string,
  { resources, extensions }: { resources: Resources; extensions: ExtensionHost },
): Promise<Expansion> {
  const [, name, args = ''] = /^\/([\w:-]+)(?:\s+([^]*))?$/.exec(typed) ?? []
  if (name !== undefined) {
    const outcome = await extensions.runCommand(name, args)
    if (outcome.type === 'prompt') return { type: 'as_typed', text: outcome.prompt }
    if (outcome.type === 'failed') return { type: 'problem', problem: outcome.message }
    if (outcome.type === 'done') return { type: 'done', ...(outcome.say !== undefined && { say: outcome.say }) }
  }
  return expandPrompt(typed, resources)
}

/** A model of the host is opened by the host, also if the settings have one of the same name. */
function withOwnModels(own: CodingAgentOptions['models'], others: ModelSource): ModelSource {
  if (!own) return others
  const source = 'choices' in own ? own : onlyModel(own)
  const isOwn = async (provider: string, modelId: string): Promise<boolean> =>
    (await source.choices()).some((choice) => choice.provider === provider && choice.modelId === modelId)
  return {
    open: async (provider, modelId) => ((await isOwn(provider, modelId)) ? source : others).open(provider, modelId),
    choices: async () => {
      const first = await source.choices()
      // Without a key for any other model, those of the host are enough.
      const rest = await others.choices().catch((error: unknown) => {
        if (first.length === 0 || !(error instanceof RegistryError)) throw error
        return []
      })
      return [...first, ...rest]
    },
  }
}

/** The session options that come from the settings. */
function optionsFrom(
  { values, rules, origins, maxMode }: LoadedSettings,
  home: string,
  moreRules: readonly Rule[],
): Omit<AgentSessionOptions, 'store' | 'models' | 'model'> & { model?: ModelReference } {
  const { user, project, trustsProject } = rules
  return {
    ...(values.model !== undefined && { model: splitModel(values.model) }),
    ...(values.thinkingLevel !== undefined && { thinkingLevel: values.thinkingLevel }),
    ...(values.smallModel !== undefined && { smallModel: splitModel(values.smallModel) }),
    ...(values.fallbackModel !== undefined && { fallbackModel: splitModel(values.fallbackModel) }),
    // Only the command line is about this session; all other settings are defaults for any session.
    ...(origins.get('permissions.mode')?.layer === 'flags'
      ? { mode: values.permissions.mode }
      : { defaultMode: values.permissions.mode }),
    ...(maxMode && { maxMode }),
    policy: () => ({ home, rules: { user: [...moreRules, ...user], project, trustsProject } }),
    settings: () => runSettingsOf(values),
    ...(values.shellPrefix !== undefined && { shellPrefix: values.shellPrefix }),
  }
}

function runSettingsOf(values: Settings): Partial<RunSettings> {
  return {
    runLimits: values.limits.run,
    sessionLimits: values.limits.session,
    compaction: values.compaction,
    retry: values.retry,
    steerPolicy: values.steerPolicy,
    followUpDelayMs: values.conversations.queue.delay_seconds * 1000,
    sendsFollowUps: values.conversations.queue.enabled,
    reasoning: values.reasoning,
    ...(values.maxOutputTokens !== undefined && { maxOutputTokens: values.maxOutputTokens }),
    ...(values.temperature !== undefined && { temperature: values.temperature }),
  }
}

function splitModel(reference: string): { provider: string; modelId: string } {
  if (isUrl(reference)) {
    const { provider, id } = splitUrl(reference)
    return { provider, modelId: id }
  }
  const slash = reference.indexOf('/')
  return { provider: reference.slice(0, slash), modelId: reference.slice(slash + 1) }
}
