import { Module } from '@nestjs/common';
import { monotonicClock } from '../common/time/clock.js';
import { SessionInterceptor } from './session.interceptor.js';
import { SharedSessions } from './shared-sessions.js';
import { SessionRegistry } from './session.registry.js';

/** The session header: one registry for the life of the process. */
@Module({
  providers: [
    SessionInterceptor,
    SharedSessions,
    { provide: SessionRegistry, useFactory: (): SessionRegistry => new SessionRegistry(monotonicClock) },
  ],
  exports: [SessionInterceptor],
})
export class SessionModule {}
