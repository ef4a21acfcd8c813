import type { ApiParts } from './api-parts.ts'
import type { Routes } from './app.ts'
import { addBlobs } from './routes/blobs.ts'
import { addDocumentation } from './routes/documentation.ts'
import { addEvents } from './routes/events.ts'
import { addHealth } from './routes/health.ts'
import { addHistory } from './routes/history.ts'
import { addPermissions } from './routes/permissions.ts'
import { addPlaces } from './routes/places.ts'
import { addQueue } from './routes/queue.ts'
import { addRuns } from './routes/runs.ts'
import { addSessionFeed } from './routes/session-feed.ts'
import { addSessions } from './routes/sessions.ts'
import { addWorkspace } from './routes/workspace.ts'

/** All that there is below `/api`, but for signing in and the socket. */
export function addRoutes(routes: Routes, parts: ApiParts): void {
  addHealth(routes, parts)
  addSessions(routes, parts)
  addPlaces(routes)
  addRuns(routes)
  addQueue(routes)
  addEvents(routes, parts)
  addSessionFeed(routes, parts)
  addPermissions(routes)
  addBlobs(routes)
  addHistory(routes, parts)
  addWorkspace(routes, parts)
  addDocumentation(routes)
}
