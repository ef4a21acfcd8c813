import {
  pushKeySchema,
  pushSubscribeSchema,
  pushSubscriptionListSchema,
  pushSubscriptionSchema,
} from '@tapetree/client/protocol'
import { z } from 'zod'
import type { PushService } from '../../push/push-service.ts'
import type { PushSubscription } from '../../push/push-store.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import type { Routes } from '../app.ts'
import { json, jsonBody } from '../responses.ts'

const subscriptionParameter = z.object({ subscription_id: z.string().regex(/^[0-9a-f]{1,64}$/) })

/** Web Push: the server's key, and the subscriptions of the calling token. */
export function addPush(routes: Routes, service: PushService | undefined): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/push/key',
      operationId: 'getPushKey',
      summary: 'Get the public key for push subscriptions',
      responses: { 200: json(pushKeySchema, 'The `applicationServerKey` of a subscription.') },
    },
    async (context) => context.json({ public_key: await running(service).publicKey() }, 200),
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/push/subscriptions',
      operationId: 'listPushSubscriptions',
      summary: 'List the push subscriptions of the calling token',
      responses: { 200: json(pushSubscriptionListSchema, 'Without their secrets.') },
    },
    async (context) => {
      const subscriptions = await running(service).list(context.get('caller'))
      return context.json({ subscriptions: subscriptions.map(bodyOf) }, 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'post',
      path: '/api/push/subscriptions',
      operationId: 'addPushSubscription',
      summary: 'Send push messages to a browser when a session needs its user',
      request: { body: jsonBody(pushSubscribeSchema) },
      responses: { 201: json(pushSubscriptionSchema, 'It ends with the token. The same endpoint twice is one.') },
    },
    async (context) => {
      const added = await running(service).subscribe(context.get('caller'), context.req.valid('json'))
      return context.json(bodyOf(added), 201)
    },
  )
  routes.add(
    'view',
    {
      method: 'delete',
      path: '/api/push/subscriptions/{subscription_id}',
      operationId: 'removePushSubscription',
      summary: 'Remove a push subscription of the calling token',
      request: { params: subscriptionParameter },
      responses: { 204: { description: 'It gets no more messages.' } },
    },
    async (context) => {
      const { subscription_id: id } = context.req.valid('param')
      if (!(await running(service).unsubscribe(context.get('caller'), id)))
        throw new RequestProblem(404, 'subscription-not-found', 'This token has no such subscription.')
      return context.body(null, 204)
    },
  )
}

function running(service: PushService | undefined): PushService {
  if (!service) throw new RequestProblem(404, 'no-push', 'This server sends no push messages.')
  return service
}

function bodyOf({ id, endpoint, createdAt }: PushSubscription): z.infer<typeof pushSubscriptionSchema> {
  return { id, service: new URL(endpoint).origin, created_at: new Date(createdAt).toISOString() }
}
