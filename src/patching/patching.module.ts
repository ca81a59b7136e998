import { Module } from '@nestjs/common';
import { PatchInterceptor } from './patch.interceptor.js';

@Module({ providers: [PatchInterceptor], exports: [PatchInterceptor] })
export class PatchingModule {}
