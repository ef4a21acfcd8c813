import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { DeclaredRoute } from '../../../packages/server/src/http/app.ts'
import { RequestProblem } from '../../../packages/server/src/util/problem-error.ts'
import { json } from '../../../packages/server/src/http/responses.ts'
import type { TestApi } from '../../../packages/server/src/http/testing/test-api.ts'
import type { Stage } from './stage.ts'
import type { Parameter } from './traversal.ts'

/** Shows any file that it is asked for, breaks where there is none, answers otherwise than it declares, and says where it keeps things. */
export function addCarelessRoute({ routes }: TestApi, { root, own }: Stage): [DeclaredRoute, Parameter] {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/careless/{file}',
      operationId: 'readCarelessly',
      request: { params: z.object({ file: z.string() }) },
      responses: { 200: json(z.object({ length: z.int() }), 'How long it is.') },
    },
    async (context) => {
      const { file } = context.req.valid('param')
      if (file === 'where') throw new RequestProblem(404, 'not-here', `It is not in ${own}.`)
      const text = await readFile(join(root, file), 'utf8')
      return context.json({ text } as unknown as { length: number }, 200)
    },
  )
  const route = routes.declared.at(-1) as DeclaredRoute
  return [route, { route, where: 'path', name: 'file' }]
}
