import type { ModelProvider } from './catalogue.ts'
import { RegistryError } from './registry-error.ts'
import { shown } from './shown.ts'

/** A server without a name: its URL is what a session keeps, so that it is found again. */
export function urlProvider(url: string): ModelProvider {
  return { id: url, name: url, api: 'openai-compatible', baseUrl: url, keyVariables: [] }
}

/** `http://host:port/v1#model` as the names of a provider and a model. */
export function splitUrl(text: string): { provider: string; id: string } {
  const [base = '', id = ''] = text.split(/#(.*)/s)
  if (!URL.canParse(base) || id === '') {
    throw new RegistryError(
      'invalid-reference',
      `${shown(text)} names no model. Write it as http://host:port/v1#model.`,
    )
  }
  const { username, password, search } = new URL(base)
  if (username !== '' || password !== '' || search !== '') {
    throw new RegistryError(
      'invalid-reference',
      'The URL of a model may hold no name, password or query, as sessions keep it. Add the server to the settings, with the variable of its key.',
    )
  }
  return { provider: base.replace(/\/+$/, ''), id }
}
