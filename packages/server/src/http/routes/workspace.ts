import {
  agentListSchema,
  fileListSchema,
  fileQuerySchema,
  folderListSchema,
  folderQuerySchema,
  modelListSchema,
  patchSettingsSchema,
  settingListSchema,
  settingsQuerySchema,
  slashCommandListSchema,
  type WireModelList,
} from '@tapetree/client/protocol'
import type { ListedModel } from '@tapetree/agent/models'
import { SettingsError, type LoadedSettings, type Origin } from '@tapetree/agent/settings'
import type { ApiParts, Routes } from '../app.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import { folderInside, completeFiles, listFolders, rootsFor } from '../bodies/list-files.ts'
import { sessionFolder } from './session-folder.ts'
import { sessionParameter } from './parameters.ts'
import { json, jsonBody } from '../responses.ts'
import { toWire } from '../bodies/wire-entry.ts'
import type { z } from 'zod'

/** Data around sessions: choices for a new session, and names for a message. */
export function addWorkspace(routes: Routes, parts: ApiParts): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/models',
      operationId: 'listModels',
      summary: 'List models, and whether a key is configured for each',
      responses: { 200: json(modelListSchema, 'Never a key.') },
    },
    async (context) => {
      const models = await parts.models(context.get('caller').tenant)
      return context.json({ models: models.map(modelOnWire) }, 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/agents',
      operationId: 'listAgents',
      summary: 'List agents for new sessions',
      responses: { 200: json(agentListSchema, 'The first is the default.') },
    },
    async (context) => {
      const agents = await parts.agents(context.get('caller').tenant)
      return context.json({ agents: agents.map((agent) => ({ ...agent })) }, 200)
    },
  )
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/settings',
      operationId: 'listSettings',
      summary: 'List settings with their origins',
      request: { query: settingsQuerySchema },
      responses: { 200: json(settingListSchema, 'Possible secrets are left out.') },
    },
    async (context) => {
      const { cwd } = context.req.valid('query')
      const { tenant } = context.get('caller')
      const roots = await rootsFor(context.get('caller'), parts)
      const folder = cwd === undefined ? undefined : await folderInside(cwd, roots)
      return context.json(settingsBody(await parts.settings(tenant, folder)), 200)
    },
  )
  routes.add(
    'drive',
    {
      method: 'patch',
      path: '/api/settings',
      operationId: 'changeSettings',
      summary: 'Choose model, thinking level and theme of the user',
      description: 'No setting that runs or allows something can be written.',
      request: { body: jsonBody(patchSettingsSchema) },
      responses: { 200: json(settingListSchema, 'The settings after the change. Another layer may override it.') },
    },
    async (context) => {
      const { tenant, folder } = context.get('caller')
      if (folder !== undefined)
        throw new RequestProblem(403, 'owner-only', 'A token that is limited to a folder cannot change settings.')
      await changeSettings(context.req.valid('json'), tenant, parts)
      return context.json(settingsBody(await parts.settings(tenant, undefined)), 200)
    },
  )
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/folders',
      operationId: 'listFolders',
      summary: 'List folders that a session can work in',
      request: { query: folderQuerySchema },
      responses: { 200: json(folderListSchema, 'The roots, or the content of a folder.') },
    },
    async (context) => {
      const { path } = context.req.valid('query')
      return context.json(await listFolders(path, await rootsFor(context.get('caller'), parts)), 200)
    },
  )
  routes.add(
    'queue',
    {
      method: 'get',
      path: '/api/sessions/{id}/files',
      operationId: 'completeFiles',
      summary: "Complete file names in the session's folder",
      request: { params: sessionParameter, query: fileQuerySchema },
      responses: { 200: json(fileListSchema, 'Paths relative to that folder.') },
    },
    async (context) => {
      const { q = '', limit = 50 } = context.req.valid('query')
      const { folder } = await sessionFolder(context, parts)
      return context.json(await completeFiles(folder, { typed: q, limit }), 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/commands',
      operationId: 'listSlashCommands',
      summary: 'List slash commands',
      request: { params: sessionParameter },
      responses: { 200: json(slashCommandListSchema, 'For this session, including its project and its extensions.') },
    },
    async (context) => {
      const live = await context.get('sessions').get(context.req.valid('param').id)
      const commands = live.driver.slashCommands().map(({ name, description }) => ({ name, description }))
      return context.json({ commands }, 200)
    },
  )
}

function modelOnWire({ id, key, ...rest }: ListedModel): WireModelList['models'][number] {
  const more = toWire(rest) as Record<string, unknown> & { provider: string }
  return { ...more, model_id: id, key: key.type }
}

async function changeSettings(
  { model, thinking_level: thinkingLevel, theme }: z.infer<typeof patchSettingsSchema>,
  tenant: string,
  parts: ApiParts,
): Promise<void> {
  if (!parts.changeSettings) throw new RequestProblem(404, 'no-settings', 'Settings cannot be changed on this server.')
  const names =
    typeof model === 'string' ? (await parts.models(tenant)).map(({ provider, id }) => `${provider}/${id}`) : []
  if (typeof model === 'string' && !names.includes(model))
    throw new RequestProblem(422, 'unknown-model', `The model ${JSON.stringify(model)} does not exist here.`)
  const change = {
    ...(model !== undefined && { model }),
    ...(thinkingLevel !== undefined && { thinkingLevel }),
    ...(theme !== undefined && { theme }),
  }
  await parts.changeSettings(tenant, change).catch((error: unknown) => {
    if (!(error instanceof SettingsError)) throw error
    throw new RequestProblem(409, 'settings-not-written', error.message)
  })
}

type SettingList = z.infer<typeof settingListSchema>

/** Every setting with its origin. Possible secrets are named but not shown. */
function settingsBody({
  values,
  origins,
  problems,
}: Pick<LoadedSettings, 'values' | 'origins' | 'problems'>): SettingList {
  const settings = [...origins]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, origin]) => ({ key, value: shown(valueAt(values, key), key), origin: originOf(origin) }))
  return { settings, problems: problems.map(({ message }) => message) }
}

const secretName = /(^|\.|_|-)(env|headers|auth|authorization|credentials?|cookies?)$|key$|token|secret|password/i
const hidden = '(not shown)'

/** Names may contain dots: the longest existing one counts. */
function valueAt(value: unknown, key: string): unknown {
  if (key === '') return value
  if (typeof value !== 'object' || value === null) return null
  for (let end = key.length; end > 0; end = key.lastIndexOf('.', end - 1)) {
    const name = key.slice(0, end)
    if (!Object.hasOwn(value, name)) continue
    return valueAt((value as Record<string, unknown>)[name], key.slice(end + 1))
  }
  return null
}

function shown(value: unknown, key: string): unknown {
  if (value === undefined) return null
  if (secretName.test(key)) return value === null ? null : hidden
  if (Array.isArray(value)) return value.map((each) => shown(each, ''))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shown(member, name)]))
}

function originOf({ layer, file, line, variable }: Origin): SettingList['settings'][number]['origin'] {
  return {
    layer,
    ...(file !== undefined && { file }),
    ...(line !== undefined && { line }),
    ...(variable !== undefined && { variable }),
  }
}
