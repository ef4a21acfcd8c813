import { setWorkspaceSchema, toolHostListSchema, workspaceResultSchema } from '@tapetree/client/protocol'
import { refuseConfined } from '../../auth/operation-roles.ts'
import type { ApiParts, Routes } from '../app.ts'
import { commandHeaders, perform, resultOf } from '../command.ts'
import { json, jsonBody } from '../responses.ts'
import { sessionParameter } from './parameters.ts'

/** The machines on which the tools of sessions can work. */
export function addToolHosts(routes: Routes, { toolHosts }: ApiParts): void {
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/tool-hosts',
      operationId: 'listToolHosts',
      summary: 'List the tool hosts that are connected, with their workspaces',
      responses: { 200: json(toolHostListSchema, 'Those that can be reached now.') },
    },
    async (context) => {
      const caller = context.get('caller')
      refuseConfined(caller)
      const hosts = toolHosts?.list(caller.tenant) ?? []
      return context.json(
        {
          tool_hosts: hosts.map(({ id, name, platform, workspaces }) => ({
            id,
            name,
            platform,
            workspaces: workspaces.map((each) => ({
              name: each.name,
              folder: each.folder,
              mode: each.mode,
              has_sandbox: each.sandbox !== undefined,
            })),
          })),
        },
        200,
      )
    },
  )
  routes.add(
    'drive',
    {
      method: 'put',
      path: '/api/sessions/{id}/workspace',
      operationId: 'setWorkspace',
      summary: 'Let the tools of a session work in a folder of a tool host',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(setWorkspaceSchema) },
      responses: { 200: json(workspaceResultSchema, 'From now on they work there. An open run continues.') },
    },
    async (context) => {
      const live = await context.get('sessions').get(context.req.valid('param').id)
      const done = await perform(context, live, { op: 'set_workspace', args: context.req.valid('json') })
      return context.json(await resultOf(live.session, done, workspaceResultSchema), 200)
    },
  )
}
