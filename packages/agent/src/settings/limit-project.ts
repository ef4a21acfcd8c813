import { resolve } from 'node:path'
import type { McpServerSettings } from '../mcp/server-settings.ts'
import { isWider } from '../permissions/modes.ts'
import { isInside } from '../util/is-inside.ts'
import type { Settings } from './built-in.ts'
import type { SettingFault } from './check-settings.ts'
import type { ProjectContent } from './project.ts'
import type { CheckedSettings } from './schema.ts'
import { hosts } from '../models/hosts.ts'
import { isUrl } from '../models/registry/model-info.ts'

/**
 * The settings that a project may set, even a trusted one: trust means that its commands may run, not that it may
 * weaken what protects the user. The rest is ignored and named.
 */
export function limitProject(
  settings: CheckedSettings,
  { user, project }: { user: Settings; project: Pick<ProjectContent, 'root' | 'files'> },
): { settings: CheckedSettings; refused: SettingFault[] } {
  const refused: SettingFault[] = []
  const refuse = (path: readonly PropertyKey[], message: string): void => void refused.push({ path, message })
  const {
    providers,
    redaction,
    permissions,
    limits,
    web,
    mcpServers,
    snapshots,
    sandbox,
    projects,
    languageServers,
    agents,
    ...rest
  } = settings
  const limited: CheckedSettings = rest

  for (const name of Object.keys(providers ?? {})) {
    refuse(
      ['providers', name],
      'A project cannot set where requests and keys are sent. Add the provider to your own settings.',
    )
  }
  for (const name of ['model', 'smallModel', 'fallbackModel'] as const) {
    if (!isUrl(limited[name] ?? '')) continue
    refuse([name], modelByUrl)
    delete limited[name]
  }
  if (limited.modelCycle?.some(isUrl)) {
    limited.modelCycle.forEach((name, index) => isUrl(name) && refuse(['modelCycle', index], modelByUrl))
    limited.modelCycle = limited.modelCycle.filter((name) => !isUrl(name))
    if (limited.modelCycle.length === 0) delete limited.modelCycle
  }
  for (const name of Object.keys(agents ?? {})) {
    refuse(['agents', name], 'A project cannot set which programs run as agents. Add the agent to your own settings.')
  }
  if (projects) refuse(['projects'], 'A project cannot set what you allow in projects.')
  if (redaction?.allow) {
    refuse(['redaction', 'allow'], 'A project cannot set which secrets are logged.')
  }
  if (web?.allowPrivateAddresses === true && !user.web.allowPrivateAddresses) {
    refuse(['web', 'allowPrivateAddresses'], 'A project cannot open your network to the agent.')
  } else if (web) limited.web = web

  if (languageServers?.isEnabled === true && !user.languageServers.isEnabled) {
    refuse(['languageServers', 'isEnabled'], 'A project cannot start language servers that you have turned off.')
  } else if (languageServers) limited.languageServers = languageServers

  if (snapshots) refuse(['snapshots'], 'A project cannot set whether its files can be put back, nor for how long.')
  if (sandbox?.showsSecretFiles !== undefined) {
    refuse(['sandbox', 'showsSecretFiles'], 'A project cannot set whether commands may read its secret files.')
  }
  for (const name of ['outsideHooks', 'outsideServers'] as const) {
    if (sandbox?.[name]) refuse(['sandbox', name], 'A project cannot let programs out of the sandbox.')
  }
  if (sandbox?.isRequired === false && user.sandbox.isRequired) {
    refuse(['sandbox', 'isRequired'], 'A project cannot let commands run without the sandbox that you require.')
  } else if (sandbox?.isRequired !== undefined) limited.sandbox = { isRequired: sandbox.isRequired }
  if (sandbox?.limits) {
    const kept = lowered(sandbox.limits, user.sandbox.limits, (name) => refuse(['sandbox', 'limits', name], tooHigh))
    limited.sandbox = { ...limited.sandbox, limits: kept }
  }
  if (sandbox?.reachesRegistries === true && !user.sandbox.reachesRegistries) {
    refuse(['sandbox', 'reachesRegistries'], 'A project cannot let commands reach registries that you have turned off.')
  } else if (sandbox?.reachesRegistries !== undefined)
    limited.sandbox = { ...limited.sandbox, reachesRegistries: sandbox.reachesRegistries }
  if (permissions) limited.permissions = limitMode(permissions, user, refuse)
  if (limits) {
    limited.limits = {
      run: lowered(limits.run ?? {}, user.limits.run, (name) => refuse(['limits', 'run', name], tooHigh)),
      session: lowered(limits.session ?? {}, user.limits.session, (name) =>
        refuse(['limits', 'session', name], tooHigh),
      ),
    }
  }
  if (mcpServers) {
    const kept = Object.entries(mcpServers).filter(([name, server]) => {
      const reason = refusalOf(server, { name, user, root: project.root })
      if (reason !== undefined) refuse(['mcpServers', name], reason)
      return reason === undefined
    })
    limited.mcpServers = Object.fromEntries(kept)
  }
  for (const key of ['extensions', 'skillFolders', 'promptFolders'] as const) {
    const paths = settings[key]
    if (paths)
      limited[key] = paths.filter((path, index) => isCovered(path, project, () => refuse([key, index], notCovered)))
  }
  return { settings: limited, refused }
}

type Refuse = (path: readonly PropertyKey[], message: string) => void

const tooHigh = 'A project cannot raise a limit, only lower it.'
const modelByUrl = 'A project cannot name a model by its URL, because that sets where requests are sent.'
const notCovered =
  'A project can only name files in its .tapetree or .agents folder, because only their content is covered by trust.'

function limitMode(
  permissions: NonNullable<CheckedSettings['permissions']>,
  user: Settings,
  refuse: Refuse,
): NonNullable<CheckedSettings['permissions']> {
  const { mode, ...rules } = permissions
  if (mode === undefined) return rules
  // If there is no sandbox, the mode of the user is `ask`, and `accept-edits` would be wider.
  const isUnsure = user.permissions.mode === 'sandboxed' && mode === 'accept-edits'
  if (!isWider(mode, user.permissions.mode) && !isUnsure) return permissions
  refuse(['permissions', 'mode'], `A project cannot widen your mode (${user.permissions.mode}) to ${mode}.`)
  return rules
}

function lowered<Limits extends { [name: string]: number | undefined }>(
  wanted: Limits,
  given: Limits,
  refuse: (name: string) => void,
): Limits {
  const kept = Object.entries(wanted).filter(([name, value]) => {
    const limit = given[name]
    const isHigher = limit !== undefined && value !== undefined && value > limit
    if (isHigher) refuse(name)
    return !isHigher
  })
  return Object.fromEntries(kept) as Limits
}

function refusalOf(
  server: McpServerSettings,
  { name, user, root }: { name: string; user: Settings; root: string },
): string | undefined {
  if (Object.hasOwn(user.mcpServers, name)) return 'A project cannot replace one of your servers.'
  if (server.type === 'http') return undefined
  const own = Object.values(user.providers).flatMap(({ keyVariable }) => keyVariable ?? [])
  const key = server.env.pass.find((variable) => [...providerKeyVariables, ...own].includes(variable))
  if (key !== undefined) return `A project cannot pass on ${key}, the key of a provider.`
  const isOutside = server.cwd !== undefined && !isInside(resolve(root, server.cwd), root)
  return isOutside ? 'A project cannot start a server outside of itself.' : undefined
}

function isCovered(path: string, { root, files }: Pick<ProjectContent, 'root' | 'files'>, refuse: () => void): boolean {
  const whole = resolve(root, '.tapetree', path)
  const isThere =
    !path.startsWith('~') && files.some((file) => isInside(resolve(root, file.path), whole)) && whole !== root
  if (!isThere) refuse()
  return isThere
}

/** Variables with the keys of model providers. Commands of a project never get them. */
const providerKeyVariables: readonly string[] = [
  ...hosts.flatMap(({ keyVariables }) => keyVariables),
  // Keys for services that are used through a provider package or a configured base URL.
  'ANTHROPIC_AUTH_TOKEN',
  'AWS_BEARER_TOKEN_BEDROCK',
  'AZURE_API_KEY',
  'AZURE_OPENAI_API_KEY',
  'COHERE_API_KEY',
  'GOOGLE_API_KEY',
]
