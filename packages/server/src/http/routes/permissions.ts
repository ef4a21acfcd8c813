import {
  permissionAnsweredSchema,
  permissionAnswerSchema,
  permissionListSchema,
  type WirePermissionList,
} from '@tapetree/client/protocol'
import { operationAccess } from '../../auth/operation-roles.ts'
import type { Routes } from '../app.ts'
import { commandHeaders, perform } from '../command.ts'
import { readSession, requestParameters, sessionParameter } from './parameters.ts'
import { json, jsonBody } from '../responses.ts'
import { toWire } from '../bodies/wire-entry.ts'

export function addPermissions(routes: Routes): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/permissions',
      operationId: 'listPermissions',
      summary: 'List pending requests to the user',
      request: { params: sessionParameter },
      responses: { 200: json(permissionListSchema, 'Oldest first.') },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const pending = await readSession(context.get('sessions'), id, (session) => session.pendingPermissions)
      return context.json({ permissions: toWire(pending) } as WirePermissionList, 200)
    },
  )
  routes.add(
    operationAccess['permission.answer'].role,
    {
      method: 'post',
      path: '/api/sessions/{id}/permissions/{request_id}',
      operationId: 'answerPermission',
      summary: 'Answer a request; the first answer wins',
      description: 'Later answers get 409 `already-resolved` with `option_id`, `client` and `seq` of the first.',
      request: { params: requestParameters, headers: commandHeaders, body: jsonBody(permissionAnswerSchema) },
      responses: { 200: json(permissionAnsweredSchema, 'It counts.') },
    },
    async (context) => {
      const { id, request_id } = context.req.valid('param')
      const live = await context.get('sessions').get(id)
      await perform(context, live, {
        op: 'permission.answer',
        args: { ...context.req.valid('json'), request_id },
      })
      return context.json({ request_id }, 200)
    },
  )
}
