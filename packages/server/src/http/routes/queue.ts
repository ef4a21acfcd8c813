import {
  queueAddedSchema,
  queueAddSchema,
  queuedMessageSchema,
  queueListSchema,
  queuePatchSchema,
  type WireQueuedMessageBody,
} from '@tapetree/client/protocol'
import { SessionError, type Session, type WaitingMessage } from '@tapetree/session'
import { z } from 'zod'
import { operationAccess } from '../../auth/operation-roles.ts'
import type { Routes } from '../app.ts'
import { commandHeaders, partsOf, perform, performAll, wasDone, resultOf, type CommandRequest } from '../command.ts'
import { etagOf, json, jsonBody } from '../responses.ts'
import { readSession, messageParameters, sessionParameter } from './parameters.ts'

const patchHeaders = commandHeaders.extend({ 'if-match': z.string().max(1000).optional() })

/** Paths, shapes and codes follow the specification; PATCH is an addition. Steers are not in the queue. */
export function addQueue(routes: Routes): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/queue',
      operationId: 'listQueue',
      summary: 'List queued messages',
      request: { params: sessionParameter },
      responses: { 200: json(queueListSchema, 'In delivery order.') },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const messages = await readSession(context.get('sessions'), id, (session) => followUps(session).map(bodyOf))
      return context.json({ messages, count: messages.length }, 200)
    },
  )
  routes.add(
    operationAccess['queue.add'].role,
    {
      method: 'post',
      path: '/api/sessions/{id}/queue',
      operationId: 'queueMessage',
      summary: 'Adds a message',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(queueAddSchema) },
      responses: { 201: json(queueAddedSchema, 'It waits.') },
    },
    async (context) => {
      const live = await context.get('sessions').get(context.req.valid('param').id)
      const done = await perform(context, live, { op: 'queue.add', args: context.req.valid('json') })
      return context.json(await resultOf(live.session, done, queueAddedSchema), 201)
    },
  )
  routes.add(
    operationAccess['queue.clear'].role,
    {
      method: 'delete',
      path: '/api/sessions/{id}/queue',
      operationId: 'clearQueue',
      summary: 'Remove all queued messages',
      request: { params: sessionParameter, headers: commandHeaders },
      responses: { 204: { description: 'None waits.' } },
    },
    async (context) => {
      const live = await context.get('sessions').get(context.req.valid('param').id)
      await perform(context, live, { op: 'queue.clear', args: { delivery: 'follow-up' } })
      return context.body(null, 204)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/queue/{msg_id}',
      operationId: 'getQueuedMessage',
      summary: 'Get one queued message',
      request: { params: messageParameters },
      responses: {
        200: json(queuedMessageSchema, 'With an ETag that changes with its text, its position and its hold.'),
      },
    },
    async (context) => {
      const { id, msg_id: messageId } = context.req.valid('param')
      return readSession(context.get('sessions'), id, (session) => {
        const { message, etag } = find(session, messageId)
        return context.json(bodyOf(message), 200, { etag })
      })
    },
  )
  routes.add(
    operationAccess['queue.remove'].role,
    {
      method: 'delete',
      path: '/api/sessions/{id}/queue/{msg_id}',
      operationId: 'removeQueuedMessage',
      summary: 'Remove one queued message',
      request: { params: messageParameters, headers: commandHeaders },
      responses: { 204: { description: 'It is no longer queued.' } },
    },
    async (context) => {
      const { id, msg_id: messageId } = context.req.valid('param')
      const live = await context.get('sessions').get(id)
      if (!wasDone(context, live.session)) find(live.session, messageId)
      await perform(context, live, { op: 'queue.remove', args: { id: messageId } })
      return context.body(null, 204)
    },
  )
  routes.add(
    operationAccess['queue.edit'].role,
    {
      method: 'patch',
      path: '/api/sessions/{id}/queue/{msg_id}',
      operationId: 'updateQueuedMessage',
      summary: 'Edit, move, hold or release a queued message',
      request: { params: messageParameters, headers: patchHeaders, body: jsonBody(queuePatchSchema) },
      responses: {
        200: json(queuedMessageSchema, 'Its new state.'),
        204: { description: 'It is no longer in the queue: it is a steer, or was delivered.' },
      },
    },
    async (context) => {
      const { id, msg_id: messageId } = context.req.valid('param')
      const live = await context.get('sessions').get(id)
      const { 'if-match': ifMatch } = context.req.valid('header')
      const commands = changesOf(messageId, context.req.valid('json'))
      const currentTag = (): string => find(live.session, messageId).etag
      // Rejects if it is not queued.
      if (!commands.some((command) => wasDone(context, live.session, command))) currentTag()
      await performAll(context, live, { commands, ifMatch, currentTag })
      const left = followUps(live.session).find((message) => message.id === messageId)
      if (!left) return context.body(null, 204)
      return context.json(bodyOf(left), 200, { etag: currentTag() })
    },
  )
}

function followUps(session: Session): WaitingMessage[] {
  return session.inbox.messages.filter(({ delivery }) => delivery === 'follow-up')
}

function find(session: Session, messageId: string): { message: WaitingMessage; etag: string } {
  const waiting = followUps(session)
  const index = waiting.findIndex(({ id }) => id === messageId)
  const message = waiting[index]
  if (!message)
    throw new SessionError('message-not-found', `No message ${messageId} is queued in session ${session.id}.`)
  return { message, etag: etagOf([message, waiting[index + 1]?.id ?? null]) }
}

function bodyOf({ id, message, imageIds, queuedAt, clientId, held }: WaitingMessage): WireQueuedMessageBody {
  return {
    id,
    message,
    image_ids: imageIds,
    queued_at: queuedAt,
    ...(clientId !== undefined && { client_id: clientId }),
    ...(held && { held }),
  }
}

/** The change that delivers it comes last. */
function changesOf(
  id: string,
  { message, image_ids, delivery, before_id, held }: z.infer<typeof queuePatchSchema>,
): CommandRequest[] {
  const edit = {
    ...(message !== undefined && { message }),
    ...(image_ids !== undefined && { image_ids }),
    ...(delivery !== undefined && { delivery }),
  }
  return partsOf([
    ...(before_id === undefined ? [] : [{ op: 'queue.move' as const, args: { id, before_id } }]),
    ...(held === true ? [{ op: 'queue.hold' as const, args: { id } }] : []),
    ...(Object.keys(edit).length === 0 ? [] : [{ op: 'queue.edit' as const, args: { id, ...edit } }]),
    ...(held === false ? [{ op: 'queue.release' as const, args: { id } }] : []),
  ])
}
