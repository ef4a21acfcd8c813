import {
  agentListSchema,
  fileListSchema,
  fileQuerySchema,
  folderListSchema,
  folderQuerySchema,
  modelListSchema,
  settingListSchema,
  settingsQuerySchema,
  slashCommandListSchema,
  type ModelList,
} from '@tapetree/client'
import type { ListedModel } from '@tapetree/agent'
import type { ApiParts } from '../api-parts.ts'
import type { Routes } from '../app.ts'
import { ProblemError } from '../../util/problem-error.ts'
import { folderInside } from '../bodies/files-inside.ts'
import { completeFiles, listFolders } from '../bodies/list-files.ts'
import { readSession } from './read-session.ts'
import { json } from '../responses.ts'
import { settingsBody } from '../bodies/settings-body.ts'
import { toWire } from '../bodies/snake-case.ts'
import { sessionParameter } from './parameters.ts'

/** What lies around sessions: what can be chosen when one is made, or named in a message. */
export function addWorkspace(routes: Routes, parts: ApiParts): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/models',
      summary: 'Models, and whether there is a key for each',
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
      summary: 'Agents that a session can be made with',
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
      summary: 'Settings, each with where it comes from',
      request: { query: settingsQuerySchema },
      responses: { 200: json(settingListSchema, 'What may be secret is left out.') },
    },
    async (context) => {
      const { cwd } = context.req.valid('query')
      const { tenant } = context.get('caller')
      const folder = cwd === undefined ? undefined : await folderInside(cwd, parts.roots(tenant))
      return context.json(settingsBody(await parts.settings(tenant, folder)), 200)
    },
  )
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/folders',
      summary: 'Folders that a session can work in',
      request: { query: folderQuerySchema },
      responses: { 200: json(folderListSchema, 'The roots, or what is inside of one.') },
    },
    async (context) => {
      const { path } = context.req.valid('query')
      return context.json(await listFolders(path, parts.roots(context.get('caller').tenant)), 200)
    },
  )
  routes.add(
    'queue',
    {
      method: 'get',
      path: '/api/sessions/{id}/files',
      summary: "Names of files in the session's folder that begin as what was typed",
      request: { params: sessionParameter, query: fileQuerySchema },
      responses: { 200: json(fileListSchema, 'Paths as seen from that folder.') },
    },
    async (context) => {
      const { q = '', limit = 50 } = context.req.valid('query')
      const { id } = context.req.valid('param')
      const cwd = await readSession(context.get('sessions'), id, ({ header }) => header?.cwd)
      if (cwd === undefined) throw new ProblemError(404, 'folder-not-found', 'The session has no folder.')
      const folder = await folderInside(cwd, parts.roots(context.get('caller').tenant))
      return context.json(await completeFiles(folder, { typed: q, limit }), 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/commands',
      summary: 'What may be typed behind a slash',
      request: { params: sessionParameter },
      responses: { 200: json(slashCommandListSchema, 'Of this session: its project and its extensions count.') },
    },
    async (context) => {
      const live = await context.get('sessions').get(context.req.valid('param').id)
      const commands = live.driver.slashCommands().map(({ name, description }) => ({ name, description }))
      return context.json({ commands }, 200)
    },
  )
}

function modelOnWire({ id, key, ...rest }: ListedModel): ModelList['models'][number] {
  const more = toWire(rest) as Record<string, unknown> & { provider: string }
  return { ...more, model_id: id, key: key.type }
}
