import {
  acceptedSchema,
  cancelSchema,
  compactSchema,
  promptResultSchema,
  promptSchema,
  resumeSchema,
  rewindSchema,
  rewoundSchema,
  retrySchema,
  type Arguments,
  type WirePromptResult,
} from '@tapetree/client/protocol'
import type { Context } from 'hono'
import type { z } from 'zod'
import { operationAccess } from '../../auth/operation-roles.ts'
import type { AppEnv, Routes } from '../app.ts'
import { commandHeaders, perform, resultOf } from '../command.ts'
import { json, jsonBody } from '../responses.ts'
import { sessionParameter } from './parameters.ts'

export function addRuns(routes: Routes): void {
  routes.add(
    operationAccess.prompt.role,
    {
      method: 'post',
      path: '/api/sessions/{id}/prompt',
      operationId: 'sendPrompt',
      summary: 'Send a prompt to the agent',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(promptSchema) },
      responses: { 202: json(promptResultSchema, 'What happened to it.') },
    },
    async (context) => {
      return context.json(await act(context, 'prompt', context.req.valid('json')), 202)
    },
  )
  routes.add(
    operationAccess.cancel.role,
    {
      method: 'post',
      path: '/api/sessions/{id}/cancel',
      operationId: 'cancelRun',
      summary: 'Cancel the current run, or only the named one',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(cancelSchema) },
      responses: { 202: json(acceptedSchema, 'It has ended.') },
    },
    async (context) => context.json(await act(context, 'cancel', context.req.valid('json')), 202),
  )
  routes.add(
    operationAccess.compact.role,
    {
      method: 'post',
      path: '/api/sessions/{id}/compact',
      operationId: 'compactSession',
      summary: 'Compact the context: replace early messages by a summary',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(compactSchema) },
      responses: { 202: json(acceptedSchema, 'What happened.') },
    },
    async (context) => context.json(await act(context, 'compact', context.req.valid('json')), 202),
  )
  routes.add(
    operationAccess.rewind.role,
    {
      method: 'post',
      path: '/api/sessions/{id}/rewind',
      operationId: 'rewindSession',
      summary: 'Go back to an entry: the conversation, the files, or both',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(rewindSchema) },
      responses: { 200: json(rewoundSchema, 'What happened, or would happen.') },
    },
    async (context) => {
      const live = await context.get('sessions').get(context.req.valid('param').id)
      const done = await perform(context, live, { op: 'rewind', args: context.req.valid('json') })
      return context.json(await resultOf(live.session, done, rewoundSchema), 200)
    },
  )
  routes.add(
    operationAccess.retry.role,
    {
      method: 'post',
      path: '/api/sessions/{id}/retry',
      operationId: 'retryRun',
      summary: 'Run again from the current leaf',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(retrySchema) },
      responses: { 202: json(acceptedSchema, 'The run that has started.') },
    },
    async (context) => context.json(await act(context, 'retry', {}), 202),
  )
  routes.add(
    operationAccess.resume.role,
    {
      method: 'post',
      path: '/api/sessions/{id}/resume',
      operationId: 'resumeRun',
      summary: 'Resume a run whose process died',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(resumeSchema) },
      responses: { 202: json(acceptedSchema, 'The resumed run; null if there is none.') },
    },
    async (context) => context.json(await act(context, 'resume', context.req.valid('json')), 202),
  )
}

type RunOperation = 'prompt' | 'cancel' | 'compact' | 'retry' | 'resume'

async function act(context: Context<AppEnv>, op: 'prompt', args: Arguments<'prompt'>): Promise<WirePromptResult>
async function act<Op extends RunOperation>(
  context: Context<AppEnv>,
  op: Op,
  args: Arguments<Op>,
): Promise<z.infer<typeof acceptedSchema>>
async function act(context: Context<AppEnv>, op: RunOperation, args: Record<string, unknown>): Promise<unknown> {
  const live = await context.get('sessions').get(context.req.param('id') ?? '')
  const done = await perform(context, live, { op, args })
  return resultOf<unknown>(live.session, done, op === 'prompt' ? promptResultSchema : acceptedSchema)
}
