import { Module } from '@nestjs/common';
import { ReasoningTransformer } from './reasoning.transformer.js';
import { ThinkTagInterceptor } from './think-tag.interceptor.js';

/** Reasoning on both ways: backfill of requests, think tags of answers. */
@Module({
  providers: [ReasoningTransformer, ThinkTagInterceptor],
  exports: [ReasoningTransformer, ThinkTagInterceptor],
})
export class ReasoningModule {}
