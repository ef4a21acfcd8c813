import type { RestClient } from '@tapetree/client'
import { newId } from '@tapetree/session'

/** Creates sessions. The same request again, as after a lost answer, opens the session of the first one. */
export function sessionCreator(rest: Pick<RestClient, 'createSession'>): (body: Body) => Promise<string> {
  let last = { request: '', commandId: '' }
  return async (body) => {
    const request = JSON.stringify(body)
    if (request !== last.request) last = { request, commandId: newId() }
    const { id } = await rest.createSession(body, { commandId: last.commandId })
    return id
  }
}

type Body = Parameters<RestClient['createSession']>[0]
